"""The documentation builds without a warning."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]
VENV = ROOT / '.venv-docs'


@pytest.fixture(name='site', scope='module')
def build_site(tmp_path_factory):
  """Builds the site as `make docs` does, and returns its directory."""
  if not (VENV / '.made_from').exists():  # The set-up finished.
    pytest.skip('needs .venv-docs (scripts/setup.sh docs)')
  site = tmp_path_factory.mktemp('site')
  command = [
    VENV / 'bin' / 'python',
    '-m',
    'sphinx',
    '-q',
    '-W',
    '--keep-going',
  ]
  built = subprocess.run(
    [*command, '-d', site / 'doctrees', ROOT / 'docs', site / 'html'],
    capture_output=True,
    text=True,
    check=False,
  )
  assert built.returncode == 0, built.stderr[-3_000:]
  return site / 'html'


def test_every_page_is_built(site):
  pages = [
    path.relative_to(ROOT / 'docs').with_suffix('.html')
    for path in (ROOT / 'docs').rglob('*')
    if path.suffix in ('.md', '.ipynb') and '_build' not in path.parts
  ]
  assert len(pages) > 20
  assert [page for page in pages if not (site / page).is_file()] == []


def test_signatures_of_configurations_are_short(site):
  page = (site / 'reference' / 'config.html').read_text()
  assert 'flight_exponent' in page and 'setting(' not in page


def test_the_site_works_offline(site):
  """No page loads a script, a style or a font from another server."""
  loaded = []
  for page in site.rglob('*.html'):
    text = page.read_text()
    loaded += [
      f'{page.name}: {part}'
      for part in text.split('<')
      if part.startswith(('script', 'link', 'img'))
      and ('src="http' in part or 'href="http' in part)
    ]
  assert loaded == []
  assert (site / 'searchindex.js').is_file()
