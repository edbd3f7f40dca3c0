"""The documentation builds without a warning."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]
VENV = ROOT / '.venv-docs'


def test_every_page_is_built_and_works_offline(tmp_path):
  if not (VENV / '.made_from').exists():  # The set-up finished.
    pytest.skip('needs .venv-docs (scripts/setup.sh docs)')
  site = tmp_path / 'html'
  command = [VENV / 'bin' / 'python', '-m', 'sphinx', '-q', '-W']
  command += ['--keep-going', '-d', tmp_path / 'doctrees', ROOT / 'docs', site]
  built = subprocess.run(command, capture_output=True, text=True, check=False)
  assert built.returncode == 0, built.stderr[-3_000:]
  pages = [
    path.relative_to(ROOT / 'docs').with_suffix('.html')
    for path in (ROOT / 'docs').rglob('*')
    if path.suffix in ('.md', '.ipynb') and '_build' not in path.parts
  ]
  assert len(pages) > 20
  assert [page for page in pages if not (site / page).is_file()] == []
  # Signatures of configurations are short.
  page = (site / 'reference' / 'config.html').read_text()
  assert 'flight_exponent' in page and 'setting(' not in page
  # No page loads a script, a style or a font from another server.
  loaded = [
    f'{page.name}: {part}'
    for page in site.rglob('*.html')
    for part in page.read_text().split('<')
    if part.startswith(('script', 'link', 'img'))
    and ('src="http' in part or 'href="http' in part)
  ]
  assert loaded == []
  assert (site / 'searchindex.js').is_file()
