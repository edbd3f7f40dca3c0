"""Makes one page of the cards in a directory of behaviors.

  python -m bt_acme.behaviors.gallery FOLDER

writes `FOLDER/index.html` with the card of each behavior in FOLDER. The page
contains its pictures and works offline.
"""

import argparse
import contextlib
import html
import pathlib

from bt_acme import files
from bt_acme.behaviors import cards


def write(folder: pathlib.Path) -> pathlib.Path:
  """Writes the gallery of a directory of behaviors.

  Args:
    folder: a directory whose subdirectories have cards, as `Card.save` writes.

  Returns:
    The path of the page.

  Raises:
    ValueError: if no subdirectory has a card.
  """
  found: dict[str, cards.Card] = {}
  for path in sorted(folder.glob('[!.]*/README.md')):
    with contextlib.suppress(FileNotFoundError):  # Not a regular file.
      found[path.parent.name] = cards.read(path.parent)
  if not found:
    raise ValueError(
      f'FOLDER={str(folder)!r} contains no directory with a README.md. Write '
      'the card of each behavior with bt_acme.describe(...).save(...).'
    )
  names = {name: html.escape(name) for name in found}
  tiles = ''.join(
    f'<a href="#{names[name]}">{card.first_picture}{names[name]}</a>\n'
    for name, card in found.items()
  )
  sections = ''.join(
    f'<section id="{names[name]}">\n{card._repr_html_()}</section>\n'
    for name, card in found.items()
  )
  body = f'<p>Behaviors</p>\n<nav class="tiles">\n{tiles}</nav>\n{sections}'
  path = folder / 'index.html'
  files.write_text(path, cards.page('Behaviors', body))
  return path


if __name__ == '__main__':
  parser = argparse.ArgumentParser(prog='python -m bt_acme.behaviors.gallery')
  text = 'directory of directories with cards; its index.html is replaced'
  parser.add_argument('folder', metavar='FOLDER', type=pathlib.Path, help=text)
  try:
    print(write(parser.parse_args().folder))
  except (OSError, ValueError) as error:
    parser.error(str(error))
