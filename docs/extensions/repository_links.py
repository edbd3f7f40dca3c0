"""Resolves links of Markdown files of the repository that a page includes.

Such a file links to others as GitHub shows them. Where another page includes
the file that a link names, the link leads to that page, and a file name as its
text becomes the title of the page. A link to the page itself, or to a file that
the site does not contain, becomes plain text.
"""

import pathlib
import re

from sphinx.util import logging

logger = logging.getLogger(__name__)
ROOT = pathlib.Path(__file__).resolve().parents[2]
# Each included file, and the page that includes it.
PAGES = {
  'BUILD.md': 'building',
  'CHANGELOG.md': 'changelog',
  'CONTRIBUTING.md': 'contributing',
  'README.md': 'index',
  'SECURITY.md': 'security',
  'benchmarks/README.md': 'benchmarks',
  'experiments/README.md': 'results',
  'experiments/atari/README.md': 'atari',
  'experiments/learning/README.md': 'small_environments',
  'experiments/paper/README.md': 'reproducing',
  'notebooks/README.md': 'tutorials',
}
_LINK = re.compile(
  r'(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]'
  r'\((?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)'
)


def _page_of(path):
  """Returns the page of a file of the repository, or None."""
  if path in PAGES:
    return PAGES[path]
  if path.startswith('docs/') and path.endswith('.md'):
    return path.removeprefix('docs/').removesuffix('.md')
  if path.startswith('notebooks/') and path.endswith('.ipynb'):
    return f'tutorials/{pathlib.PurePath(path).stem}'
  return None


def resolve(text, source, page):
  """Rewrites the links of an included file.

  Args:
    text: the file's Markdown.
    source: the file's path in the repository.
    page: the name of the page that includes the file.

  Returns:
    The Markdown for the page. Links to missing files are reported as warnings.
  """
  folder = (ROOT / source).parent

  def replace(match):
    target, anchor = match['target'], match['anchor'] or ''
    if not target or re.match(r'[a-z]+:', target):
      return match[0]
    path = (folder / target).resolve()
    if path.is_relative_to(ROOT / 'docs') and source.startswith('docs/'):
      return match[0]
    if not path.exists():
      logger.warning('%s links to %s, which does not exist', source, target)
      return match['text']
    depth = '../' * page.count('/')
    relative = path.relative_to(ROOT)
    if match['image']:
      return f'![{match["text"]}]({depth}../{relative})'
    found = _page_of(str(relative))
    if found is None or (found == page and not anchor):
      return match['text']
    if (ROOT / 'docs' / f'{found}.ipynb').exists():  # A link, not a file.
      return f'{{doc}}`{match["text"]} </{found}>`'
    text = '' if match['text'].endswith('.md') else match['text']
    return f'[{text}](/{found}.md{anchor})'

  return _LINK.sub(replace, text)


def _include(app, relative_path, parent_docname, content):
  """Rewrites the links of a file that a page includes."""
  root = (pathlib.Path(app.srcdir) / relative_path).resolve()
  if root.is_relative_to(ROOT / 'docs'):
    return
  source = str(root.relative_to(ROOT))
  content[0] = resolve(content[0], source, parent_docname)


def _read(app, docname, content):
  """Rewrites the links of a page to files outside `docs`."""
  path = app.env.doc2path(docname, base=False)
  if str(path).endswith('.md'):
    content[0] = resolve(content[0], f'docs/{path}', docname)


def setup(app):
  """Connects the rewriting to the reading of pages and included files."""
  app.connect('include-read', _include)
  app.connect('source-read', _read)
  return {'parallel_read_safe': True, 'parallel_write_safe': True}
