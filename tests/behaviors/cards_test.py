"""Tests the HTML of cards, and the gallery of a directory of behaviors."""

import os
import re
import runpy
import sys

import pytest

from bt_acme.behaviors import cards, gallery

_GIF = b'GIF89a'
_TEXT = """# name & co

- First: `a<b`
- Second, over
  two lines

![A film](film.gif)

| environment | solved |
| --- | --: |
| `A` | **5%** |

```python
x = 1

y = '<b>'
```
See [the site](https://example.org/?a=1&b=2).
"""


def html_of(text, pictures=None):
  return cards.Card(text, pictures or {})._repr_html_()


def test_every_kind_of_block():
  html = html_of(_TEXT, {'film.gif': _GIF})
  assert re.findall(r'<(h1|p|ul|table|pre)>', html) == [
    *('h1', 'ul', 'p', 'table', 'pre', 'p')
  ]
  for part in (
    '<h1>name &amp; co</h1>',
    '<li>First: <code>a&lt;b</code></li>\n<li>Second, over\ntwo lines</li>',
    'src="data:image/gif;base64,R0lGODlh"',
    '<th>environment</th>\n<th style="text-align:right">solved</th>',
    '<td><code>A</code></td>\n<td style="text-align:right"><strong>5%</strong>',
    "x = 1\n\ny = '&lt;b&gt;'\n</code></pre>",
    '<a href="https://example.org/?a=1&amp;b=2">the site</a>',
  ):
    assert part in html


@pytest.mark.parametrize(
  'text',
  [
    '<script>alert(1)</script>',
    '[x](javascript:alert(1)) [x](&#106;avascript:alert(1)) <javascript:a>',
    '![x](https://a.org/x.gif) ![x](../x.gif) ![y] [x](x.gif)\n\n[y]: y.gif',
    '![" onerror="alert(1)](x.gif)',
    '[x](https://example.org/" onclick="alert(1)) [y]\n\n[y]: javascript:a',
    '# <img src=x>',
    '| <b onclick=x> |\n| --- |\n| <script> |',
  ],
)
def test_untrusted_text_is_only_text(text):
  html = html_of(text)
  assert set(re.findall(r'<(\w+)', html)) <= {
    *('p', 'h1', 'img', 'a', 'table', 'thead', 'tbody', 'tr', 'th', 'td')
  }
  for _, tag in re.findall(r'<(\w+)([^>]*)>', html):
    unquoted = re.sub('"[^"]*"', '', tag)
    assert 'on' not in unquoted and 'javascript' not in tag
    assert not re.search('src(?!="x.gif")|href(?!="https://)', tag)


def test_a_saved_card_is_read_with_its_pictures(tmp_path):
  card = cards.Card(_TEXT, {'film.gif': _GIF})
  card.save(tmp_path)
  assert cards.read(tmp_path) == card
  page = (tmp_path / 'card.html').read_text()
  assert page.startswith('<!doctype html>') and 'src="film.gif"' in page


def test_a_saved_card_replaces_another_with_its_pictures(tmp_path):
  old = '# A\n\n- SHA-256 of `params.npz`: `1`\n\n![x](old.gif) ![x](film.gif)'
  cards.Card(old, {'old.gif': _GIF, 'film.gif': b'1'}).save(tmp_path)
  (tmp_path / 'other.gif').write_bytes(b'1')
  for name in ('card.html', 'film.gif'):  # A card never follows links.
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to('other.gif')
  card = cards.Card(_TEXT, {'film.gif': _GIF})
  card.save(tmp_path)
  assert cards.read(tmp_path) == card
  assert (tmp_path / 'other.gif').read_bytes() == b'1'
  names = sorted(path.name for path in tmp_path.iterdir())
  assert names == ['README.md', 'card.html', 'film.gif', 'other.gif']


def test_pictures_elsewhere_or_too_large_are_not_read(tmp_path, monkeypatch):
  monkeypatch.setattr(cards, '_LARGEST_PICTURE', 4)
  folder = tmp_path / 'a'
  folder.mkdir()
  (tmp_path / 'secret.png').write_bytes(b'1')
  (folder / 'small.png').write_bytes(b'1234')
  (folder / 'large.png').write_bytes(b'12345')
  (folder / 'link.png').symlink_to(tmp_path / 'secret.png')
  names = ('../secret.png', 'small.png', 'small.png', 'large.png', 'link.png')
  (folder / 'README.md').write_text(''.join(f'![x]({x})' for x in names))
  card = cards.read(folder)
  assert list(card.pictures) == ['small.png']
  assert card._repr_html_().count('data:image') == 1


def test_a_gallery_has_every_card_and_works_offline(
  tmp_path, monkeypatch, capsys
):
  for name in ('one', 'two & three', '.three.partial-50092aef'):
    (tmp_path / name).mkdir()
    cards.Card(_TEXT, {'film.gif': _GIF}).save(tmp_path / name)
  (tmp_path / 'without').mkdir()
  monkeypatch.setattr(sys, 'argv', ['gallery', str(tmp_path)])
  runpy.run_path(gallery.__file__, run_name='__main__')
  path = tmp_path / 'index.html'
  assert capsys.readouterr().out == f'{path}\n'
  page = path.read_text()
  assert page.count('<h1>name') == 2 and page.count('data:image/gif') == 4
  assert '<a href="#two &amp; three">' in page
  assert '<section id="two &amp; three">' in page
  assert 'src="http' not in page and '<link' not in page


@pytest.mark.parametrize('name', ['README.md', 'card.html', 'film.gif'])
def test_a_file_that_is_not_of_a_card_is_kept(name, tmp_path):
  own = tmp_path / name
  own.write_text('mine')
  with pytest.raises(ValueError, match=f'a {name} that is a link or not part'):
    cards.Card(_TEXT, {'film.gif': _GIF}).save(tmp_path)
  assert own.read_text() == 'mine'


def test_a_directory_without_cards(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(sys, 'argv', ['gallery', str(tmp_path)])
  with pytest.raises(SystemExit, match='2'):
    runpy.run_path(gallery.__file__, run_name='__main__')
  message = r'error: .*no directory with .*describe\(...\)'
  assert re.search(message, capsys.readouterr().err)
  for name in 'abc':
    (tmp_path / name).mkdir()
  os.mkfifo(tmp_path / 'a' / 'README.md')  # Reading it would wait forever.
  (tmp_path / 'b' / 'README.md').mkdir()
  (tmp_path / 'c' / 'README.md').symlink_to(__file__)
  with pytest.raises(SystemExit, match='2'):
    runpy.run_path(gallery.__file__, run_name='__main__')
