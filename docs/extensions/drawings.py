"""Embeds the SVG files of `docs/drawings` into the pages that show them.

Text and lines then take the colors of the page, in light and dark mode, and the
text can be searched. The description of the image becomes the caption. An image
on another server, such as a badge, becomes its description: pages work offline.
"""

import html
import pathlib

from docutils import nodes

DRAWINGS = pathlib.Path(__file__).resolve().parents[1] / 'drawings'


def _embed(app, doctree):
  """Replaces the images of a page that are drawings or on another server."""
  for image in list(doctree.findall(nodes.image)):
    if image['uri'].startswith('https://'):
      image.replace_self(nodes.Text(image['alt']))
      continue
    path = DRAWINGS / pathlib.PurePath(image['uri']).name
    if not image['uri'].endswith('.svg') or not path.is_file():
      continue
    app.env.note_dependency(str(path))
    caption = html.escape(image['alt'])
    drawing = nodes.raw(
      '',
      f'<figure class="drawing"><div role="img" aria-label="{caption}">'
      f'{path.read_text()}</div><figcaption>{caption}</figcaption></figure>',
      format='html',
    )
    # An image is alone in its paragraph, which cannot hold a figure.
    image.parent.replace_self(drawing)


def setup(app):
  """Connects the embedding to the end of reading a page."""
  app.connect('doctree-read', _embed, priority=400)
  return {'parallel_read_safe': True, 'parallel_write_safe': True}
