"""The directive `drawing`: puts an SVG of `docs/drawings` into the page itself.

Text and lines then take the colors of the page, in light and dark mode.
"""

import html
import pathlib

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

DRAWINGS = pathlib.Path(__file__).resolve().parents[1] / 'drawings'


class Drawing(SphinxDirective):
  """Inserts a drawing; the text of the directive describes it in words."""

  required_arguments = 1
  has_content = True
  option_spec = {'width': directives.nonnegative_int}

  def run(self):
    """Returns the drawing and its caption."""
    path = DRAWINGS / f'{self.arguments[0]}.svg'
    if not path.is_file():
      raise self.error(f'{path} does not exist.')
    self.env.note_dependency(str(path))
    caption = ' '.join(self.content)
    if not caption:
      raise self.error('A drawing needs a caption.')
    width = self.options.get('width', 640)
    figure = nodes.raw(
      '',
      f'<figure class="drawing" style="max-width: {width}px">'
      f'<div role="img" aria-label="{html.escape(caption)}">'
      f'{path.read_text()}</div>'
      f'<figcaption>{html.escape(caption)}</figcaption></figure>',
      format='html',
    )
    return [figure]


def setup(app):
  """Registers the directive."""
  app.add_directive('drawing', Drawing)
  return {'parallel_read_safe': True, 'parallel_write_safe': True}
