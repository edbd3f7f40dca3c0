"""Runs README's Python as it is printed, and checks the maps of the tree."""

import pathlib
import re
import textwrap

import pytest

from bt_acme.config import presets

ROOT = pathlib.Path(__file__).parents[1]
README = ROOT / 'README.md'
SECTION = '## As a library'
NOTEBOOK = '## In a notebook or a script'


def blocks(section_title):
  """Line and text of each block of Python in a section."""
  text = README.read_text()
  start = text.index(f'\n{section_title}\n') + 1
  end = text.find('\n## ', start)
  section = text[:start].count('\n'), text[start : end if end > 0 else None]
  return [
    (
      section[0] + section[1][: match.start()].count('\n') + 2,
      textwrap.dedent(match['code']),
    )
    for match in re.finditer(
      r'^```python\n(?P<code>.*?)^```$', section[1], re.DOTALL | re.MULTILINE
    )
  ]


BLOCKS = blocks(SECTION)


@pytest.mark.parametrize('builder', ('R2D2Builder', 'DQNBuilder', 'TD3Builder'))
def test_there_is_an_example_of_each(builder):
  assert any(f'.{builder}(' in code for _, code in BLOCKS)


@pytest.mark.parametrize(
  'line, code', BLOCKS, ids=[f'line{line}' for line, _ in BLOCKS]
)
def test_block_runs(line, code, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  # Acme's default loggers write into the home folder.
  monkeypatch.setenv('HOME', str(tmp_path))
  # Blank lines, so that errors name lines of the README.
  program = compile('\n' * (line - 1) + code, str(README), 'exec')
  exec(program, {'__name__': '__main__'})
  if 'print(' in code:
    assert capsys.readouterr().out.strip()


def test_the_notebook_example_is_in_the_quickstart():
  """The tests of the notebooks execute it there."""
  ((_, code),) = blocks(NOTEBOOK)
  lines = iter((ROOT / 'notebooks' / 'quickstart.py').read_text().splitlines())
  missing = [
    line
    for line in code.splitlines()
    if line and line not in lines  # Each is looked for behind the last one.
  ]
  assert not missing


def test_the_table_of_presets_has_each_of_them():
  text = README.read_text()
  table = text[text.index('| preset | for |') :].split('\n\n')[0]
  assert re.findall(r'^\| `(\w+)`', table, re.MULTILINE) == list(
    presets.PRESETS
  )
  # The default is that of the scripts.
  assert '`paper` (the default)' in table


def _mapped():
  """Paths of the tree in BUILD.md, which is indented by two for each folder."""
  text = (ROOT / 'BUILD.md').read_text()
  start = text.index('```\n', text.index('\n## The tree\n')) + 4
  folders, paths = [], []
  for line in text[start : text.index('```', start)].splitlines():
    name = line.split()[0]
    folders = folders[: (len(line) - len(line.lstrip())) // 2]
    paths.append('/'.join([*folders, name.rstrip('/')]))
    folders.append(name.rstrip('/'))
  return paths


def test_the_map_has_every_room_and_nothing_that_is_not_there():
  mapped = _mapped()
  assert len(set(mapped)) == len(mapped)
  modules = sorted((ROOT / 'bt_acme').rglob('*.py'))
  rooms = {str(path.parent.relative_to(ROOT)) for path in modules}
  assert rooms - set(mapped) == set()
  assert [path for path in mapped if not (ROOT / path).exists()] == []


@pytest.mark.parametrize('name', ['README.md', 'BUILD.md', 'docs/readings.md'])
def test_paths_exist(name):
  text = (ROOT / name).read_text()
  folders = 'bt_acme|benchmarks|docs|experiments|launch|scripts|tests'
  paths = set(re.findall(rf'`((?:{folders})/[\w./]*)`', text))
  paths |= set(re.findall(r'\]\(((?!http)[\w./]+)', text))
  assert paths
  missing = {path for path in paths if not (ROOT / path).exists()}
  # These stand for a file of the reader.
  assert {path for path in missing if 'YOURS' not in path} == set()
