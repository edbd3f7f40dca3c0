"""Cards of behaviors: `README.md` in the directory of a behavior, and its HTML.

Cards may come from untrusted sources: in HTML, their text is escaped, links
lead to the web only, and pictures come from the same directory only.
"""

import base64
import html
import pathlib
import re
from typing import Mapping, NamedTuple

from bt_acme import files

TEXT, _PAGE = 'README.md', 'card.html'
_MARK = re.compile('SHA-256 of `params.npz`')  # Every card states it.
_PICTURE = re.compile(r'!\[([^\]]*)\]\(([\w-]+\.(gif|png))\)')
_LINK = re.compile(r'\[([^\]]*)\]\((https?://[^)\s]*)\)')
# A block is code, a heading, or lines up to an empty line.
_BLOCKS = re.compile(
  r'```\w*\n(.*?)\n```|^(#{1,6}) ([^\n]*)|(\S.*?)(?=\n\s*\n|\n```|\Z)',
  re.DOTALL | re.MULTILINE,
)
_LARGEST_PICTURE = 1 << 22  # Bytes; the video of a card has about 50,000.
_LONGEST_TEXT = 1 << 20
_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 }
main { max-width: 52rem; margin: auto; padding: 1rem }
h1 { border-top: 1px solid #8886; padding-top: 1rem }
img { max-width: 100%; display: block }
pre, .wide { overflow-x: auto }
pre { padding: .8rem; background: #8882; border-radius: .3rem }
code { font-size: .9em; overflow-wrap: anywhere }
pre code { overflow-wrap: normal }
td, th { padding: .2rem .6rem; border-bottom: 1px solid #8886 }
th { text-align: left }
td.r, th.r { text-align: right }
td code { white-space: nowrap }
.tiles { display: flex; flex-wrap: wrap; gap: 1rem }
.tiles a { width: 10rem }
"""


class Card(NamedTuple):
  """The description of a behavior; a notebook shows it with its pictures.

  Attributes:
    markdown: the text.
    pictures: the contents of the GIF and PNG files in the text, by name.

  Example:
    ```python
    card = bt_acme.describe('minigrid-explorer')
    print(card)
    card.save('runs/explorer')
    ```
  """

  markdown: str
  pictures: Mapping[str, bytes] = {}

  def __str__(self) -> str:
    return self.markdown

  def _repr_html_(self) -> str:
    return ''.join(map(self._block, _BLOCKS.finditer(self.markdown)))

  @property
  def first_picture(self) -> str:
    """HTML of the first picture; empty if there is none."""
    found = _PICTURE.search(self.markdown)
    return self._inline(found[0]) if found else ''

  def save(self, folder: str | pathlib.Path) -> None:
    """Writes the card as `README.md` and `card.html`, and its pictures.

    Args:
      folder: an existing directory, usually that of the behavior. A card in it
        is replaced.

    Raises:
      ValueError: if the directory has a `README.md` that is not a card.
    """
    path = pathlib.Path(folder)
    if (path / TEXT).exists() and not files_in(path):
      raise ValueError(
        f'folder={str(folder)!r} has a {TEXT} that is not a card and would be '
        'replaced. Choose another directory.'
      )
    files.write_text(path / TEXT, self.markdown)
    body = Card(self.markdown)._repr_html_()  # Refers to the saved pictures.
    files.write_text(path / _PAGE, page(path.resolve().name, body))
    for name, data in self.pictures.items():
      (path / name).write_bytes(data)

  def _block(self, match: 're.Match[str]') -> str:
    """Returns the HTML of code, a heading, a table, a list or a paragraph."""
    code, marks, title, text = match.groups()
    if code is not None:
      return f'<pre><code>{html.escape(code)}</code></pre>\n'
    if marks:
      return f'<h{len(marks)}>{self._inline(title)}</h{len(marks)}>\n'
    if text.startswith('|'):
      header, rule, *rows = map(_cells, text.splitlines())
      lines = [self._row('th', header, rule)]
      lines += [self._row('td', row, rule) for row in rows]
      return f'<div class="wide"><table>{"".join(lines)}</table></div>\n'
    if text.startswith('- '):
      items = re.split('^- ', text, flags=re.MULTILINE)[1:]
      inner = ''.join(f'<li>{self._inline(item)}</li>' for item in items)
      return f'<ul>{inner}</ul>\n'
    return f'<p>{self._inline(text)}</p>\n'

  def _row(self, tag: str, cells: list[str], rule: list[str]) -> str:
    inner = ''.join(
      f'<{tag} class="{"r" if mark.endswith(":") else "l"}">'
      f'{self._inline(cell)}</{tag}>'
      for cell, mark in zip(cells, rule, strict=False)
    )
    return f'<tr>{inner}</tr>\n'

  def _inline(self, text: str) -> str:
    """Returns the HTML of text with code, pictures, links and bold words."""
    plain_and_code = re.split('`([^`]*)`', html.escape(text))
    return ''.join(
      f'<code>{part}</code>' if i % 2 else self._marked(part)
      for i, part in enumerate(plain_and_code)
    )

  def _marked(self, text: str) -> str:
    text = _PICTURE.sub(self._picture, text)
    text = _LINK.sub(r'<a href="\2">\1</a>', text)
    return re.sub(r'\*\*(.+?)\*\*', r'<b>\1</b>', text)

  def _picture(self, match: 're.Match[str]') -> str:
    title, source, kind = match.groups()
    if source in self.pictures:
      data = base64.b64encode(self.pictures[source]).decode()
      source = f'data:image/{kind};base64,{data}'
    return f'<img alt="{title}" title="{title}" src="{source}">'


def read(folder: pathlib.Path) -> Card:
  """Reads the card in the directory of a behavior.

  Args:
    folder: a directory with a `README.md`. A missing or very large picture is
      left out.

  Raises:
    OSError: if the card cannot be read.
  """
  with open(folder / TEXT, encoding='utf-8', errors='replace') as file:
    text = file.read(_LONGEST_TEXT)
  pictures = {}
  for _, name, _ in _PICTURE.findall(text):
    path = folder / name
    if path.is_file() and path.stat().st_size <= _LARGEST_PICTURE:
      pictures[name] = path.read_bytes()
  return Card(text, pictures)


def files_in(folder: pathlib.Path) -> set[str]:
  """Returns the names of the files of a directory's card, if it has one."""
  try:
    text = read(folder).markdown
  except OSError:
    return set()
  if not _MARK.search(text):
    return set()
  return {TEXT, _PAGE, *(name for _, name, _ in _PICTURE.findall(text))}


def page(title: str, body: str) -> str:
  """Returns an HTML page that needs no other file.

  Args:
    title: the title, as plain text.
    body: the HTML of the contents.
  """
  return (
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    f'<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n'
    f'<main>\n{body}</main>\n</html>\n'
  )


def _cells(line: str) -> list[str]:
  return [cell.strip() for cell in line.strip('|').split('|')]
