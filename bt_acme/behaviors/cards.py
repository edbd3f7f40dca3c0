"""Cards of behaviors: `README.md` in the directory of a behavior, and its HTML.

`api.card_text` writes their text. Cards may come from untrusted sources: in
HTML, their text is escaped, links lead to the web only, and pictures come from
the same directory only.
"""

import base64
import html
import os
import pathlib
import re
from collections.abc import Mapping
from typing import NamedTuple

from markdown_it import MarkdownIt, rules_inline

from bt_acme import files

TEXT, _PAGE = 'README.md', 'card.html'
_MARK = re.compile('SHA-256 of `params.npz`')  # Every card states it.
_PICTURE = re.compile(r'!\[([^][]*)\]\(([\w-]+\.(gif|png))\)')
_LARGEST_PICTURE = 1 << 22  # Bytes; the video of a card has about 50,000.
_LONGEST_TEXT = 1 << 20
_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 }
main { max-width: 52rem; margin: auto; padding: 1rem }
h1 { border-top: 1px solid #8886; padding-top: 1rem }
img { max-width: 100%; display: block }
pre, table { display: block; overflow-x: auto }
pre { padding: .8rem; background: #8882; border-radius: .3rem }
code { font-size: .9em; overflow-wrap: anywhere }
pre code { overflow-wrap: normal }
td, th { padding: .2rem .6rem; border-bottom: 1px solid #8886 }
th { text-align: left }
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
    return _PARSER.render(self.markdown, {**self.pictures})

  @property
  def first_picture(self) -> str:
    """HTML of the first picture; empty if there is none."""
    found = _PICTURE.search(self.markdown)
    return _PARSER.renderInline(found[0], {**self.pictures}) if found else ''

  def save(self, folder: str | pathlib.Path) -> None:
    """Writes the card as `README.md` and `card.html`, and its pictures.

    Args:
      folder: the directory, usually that of the behavior. A card in it is
        replaced, with its pictures.

    Raises:
      ValueError: if one of these files exists and is not part of a card.
    """
    path, replaced = pathlib.Path(folder), files_in(pathlib.Path(folder))
    for name in sorted({TEXT, _PAGE, *self.pictures} - replaced):
      if os.path.lexists(path / name):
        raise ValueError(
          f'folder={str(folder)!r} has a {name} that is a link or not part of '
          'a card and would be replaced. Choose another directory.'
        )
    for name in replaced | {TEXT, _PAGE, *self.pictures}:
      # A link in a directory of someone else may lead to any file.
      if name not in _files(self.markdown) or (path / name).is_symlink():
        (path / name).unlink(missing_ok=True)
    files.write_text(path / TEXT, self.markdown)
    body = Card(self.markdown)._repr_html_()  # Refers to the saved pictures.
    files.write_text(path / _PAGE, page(path.resolve().name, body))
    for name, data in self.pictures.items():
      (path / name).write_bytes(data)


def read(folder: pathlib.Path) -> Card:
  """Reads the card in the directory of a behavior.

  Args:
    folder: a directory with a `README.md`. A picture that is missing, very
      large or a symbolic link is left out.

  Raises:
    FileNotFoundError: if there is no card, or it is not a regular file.
    OSError: if the card cannot be read.
  """
  if (folder / TEXT).is_symlink() or not (folder / TEXT).is_file():
    raise FileNotFoundError(f'{folder / TEXT} is not a regular file')
  with open(folder / TEXT, encoding='utf-8', errors='replace') as file:
    text = file.read(_LONGEST_TEXT)
  pictures = {}
  for name in {name for _, name, _ in _PICTURE.findall(text)}:
    path = folder / name
    is_file = path.is_file() and not path.is_symlink()
    if is_file and path.stat().st_size <= _LARGEST_PICTURE:
      pictures[name] = path.read_bytes()
  return Card(text, pictures)


def files_in(folder: pathlib.Path) -> set[str]:
  """Returns the names of the files of a directory's card, if it has one."""
  try:
    text = read(folder).markdown
  except OSError:
    return set()
  return _files(text) if _MARK.search(text) else set()


def _files(text: str) -> set[str]:
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


def _picture(state: rules_inline.StateInline, silent: bool) -> bool:
  """Reads a picture, if one starts here; the rest is links and text."""
  if not (found := _PICTURE.match(state.src, state.pos, state.posMax)):
    return False
  title, source, kind = found.groups()
  if not silent:
    # If a card repeats a picture, only the first one contains the data.
    if data := state.env.pop(source, b''):
      source = f'data:image/{kind};base64,{base64.b64encode(data).decode()}'
    attributes = {'alt': title, 'title': title, 'src': source}
    state.push('picture', 'img', 0).attrs = attributes
  state.pos = found.end()
  return True


_PARSER = MarkdownIt('commonmark', {'html': False}).enable('table')
_PARSER.inline.ruler.at('image', _picture)
_PARSER.validateLink = re.compile('https?://').match  # type: ignore[method-assign,assignment]
