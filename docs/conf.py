"""Configures Sphinx; `make docs` builds the site in `docs/_build/html`."""

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / 'extensions'), str(ROOT)]

from bt_acme.version import __version__ as release  # noqa: E402

project = 'bt_acme'
html_title = f'bt_acme {release}'
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme = 'furo'
html_static_path = ['static']
html_css_files = ['site.css']
html_js_files = ['site.js']
html_favicon = 'static/icon.svg'
html_theme_options = {'navigation_with_keys': True}

extensions = [
  'myst_nb',
  'sphinx_copybutton',
  'api',  # This one and the next two are in docs/extensions.
  'drawings',
  'repository_links',
  'settings',
]
highlight_language = 'text'  # Of blocks that do not name one.
exclude_patterns = ['_build', 'extensions', 'static']
# Every reference must resolve.
nitpicky = True
nitpick_ignore_regex = [('py:.*', '.*')]  # Types in signatures are plain text.
myst_enable_extensions = ['attrs_inline', 'colon_fence', 'deflist']
myst_heading_anchors = 4
myst_heading_slug_func = 'github'  # The same links work on GitHub.
# The notebooks have their outputs. Executing them takes half an hour.
nb_execution_mode = 'off'
nb_merge_streams = True
copybutton_exclude = '.linenos, .gp, .go'
# Docstrings are Markdown, and Python's types are not cross-referenced.
add_module_names = False
maximum_signature_line_length = 80  # Longer ones have a line per parameter.
toc_object_entries_show_parents = 'hide'
python_use_unqualified_type_names = True
