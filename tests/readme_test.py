"""Runs the Python of README and the documentation, and checks their commands.

Every block of code is executed, unless a comment above it gives a reason:

  <!-- not run: it needs a cluster -->
  <!-- part of: notebooks/quickstart.py -->

The lines of a part appear in that file, in this order, and are tested there.
Budgets and networks are tiny here.
"""

import importlib
import importlib.util
import pathlib
import re
import shlex
from typing import NamedTuple

import pytest
from absl.testing import flagsaver
from markdown_it import MarkdownIt

from bt_acme.cli import flags, training
from bt_acme.config import presets
from tests import small_examples

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [
  ROOT / 'README.md',
  *(
    path
    for path in sorted((ROOT / 'docs').rglob('*.md'))
    if '_build' not in path.parts
  ),
]


class Block(NamedTuple):
  """A fenced block of a page."""

  line: int
  language: str
  mark: str  # `not run`, `part of`, or empty.
  reason: str
  code: str


def blocks(path):
  """Returns the blocks of a page, except for directives."""
  found, comment = [], ''
  for token in MarkdownIt().parse(path.read_text()):
    if token.type == 'fence' and not token.info.startswith('{'):
      mark = re.fullmatch(r'<!-- ([\w ]+): (.+) -->\n', comment)
      reason = mark.groups() if mark else ('', '')
      line = token.map[0] + 2
      found.append(Block(line, token.info, *reason, token.content))
    comment = token.content if token.type == 'html_block' else ''
  return found


def name_of(path):
  return str(path.relative_to(ROOT))


def _pages_with(language):
  return [
    pytest.param(path, id=name_of(path))
    for path in PAGES
    if any(
      block.language == language and block.mark != 'part of'
      for block in blocks(path)
    )
  ]


@pytest.mark.parametrize('path', _pages_with('python'))
@pytest.mark.usefixtures('shared_functions')
def test_python_runs(path, tmp_path, monkeypatch, capsys):
  small_examples.make_runs_small(monkeypatch)
  monkeypatch.chdir(tmp_path)
  # Acme's default loggers write into the home directory.
  monkeypatch.setenv('HOME', str(tmp_path))
  namespace = {'__name__': '__main__'}
  for block in blocks(path):
    if block.language != 'python' or block.mark:
      continue
    code = re.sub(
      r'(max_actor_steps=|resume\()(\d+)_000\b',
      lambda match: f'{match[1]}{int(match[2]) * 50}',
      block.code,
    )
    # Blank lines, so that errors name lines of the page.
    program = compile('\n' * (block.line - 1) + code, str(path), 'exec')
    exec(program, namespace)
    if 'print(' in code:
      assert capsys.readouterr().out.strip()


@pytest.mark.parametrize('path', PAGES, ids=name_of)
def test_every_block_is_run_or_gives_a_reason(path):
  for block in blocks(path):
    where = f'{name_of(path)}:{block.line}'
    assert block.language, f'{where}: name the language'
    assert block.mark in ('', 'not run', 'part of'), where
    if block.language == 'bash':
      assert block.mark == 'not run', f'{where}: give a reason'
    if block.mark == 'part of':
      lines = iter((ROOT / block.reason).read_text().splitlines())
      missing = [
        line
        for line in block.code.splitlines()
        if line and line not in lines  # Searches after the previous one.
      ]
      assert missing == [], where


def _commands(path):
  """Returns the words of each command on a page."""
  for block in blocks(path):
    if block.language == 'bash':
      for line in block.code.replace('\\\n', ' ').splitlines():
        words = shlex.split(line.replace('$(', '').replace(')', ''), True)
        if words:
          yield words


@pytest.mark.parametrize('path', _pages_with('bash'))
def test_commands_exist(path, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  makefile = (ROOT / 'Makefile').read_text()
  for words in _commands(path):
    if words[0] == 'make':
      assert f'\n{words[1]}:' in makefile
    if '-m' in words:
      module = words[words.index('-m') + 1]
      assert importlib.util.find_spec(module) is not None
      if module == 'benchmarks.compiled':
        _check_flags(module, words[words.index(module) + 1 :])
    for word in words:
      if re.fullmatch(r'launch/\w+\.py', word):
        module = word.removesuffix('.py').replace('/', '.')
        _check_flags(module, words[words.index(word) + 1 :])


@flagsaver.flagsaver
def _check_flags(name, words):
  """Builds the settings of a program from the flags of a command."""
  module = importlib.import_module(name)
  training.define(module.Settings)
  if name == 'benchmarks.compiled':
    module._define_flags()
  training.FLAGS([name, *words])
  preset = presets.get(training.FLAGS.preset, module.Settings)
  flags.from_flags(module.Settings, preset)
  if name == 'benchmarks.compiled':
    known = {'learner step', 'policy step', 'server with rewards step'}
    assert set(training.FLAGS.function) <= known


def _mapped():
  """Paths of the tree in BUILD.md, indented by two for each directory."""
  text = (ROOT / 'BUILD.md').read_text().partition('\n## The tree\n')[2]
  parents, paths = [], []
  for line in text.split('```')[1].splitlines()[1:]:
    name = line.split()[0]
    parents = parents[: (len(line) - len(line.lstrip())) // 2]
    paths.append('/'.join([*parents, name.rstrip('/')]))
    parents.append(name.rstrip('/'))
  return paths


def test_the_map_has_every_package_and_only_existing_paths():
  mapped = _mapped()
  assert len(set(mapped)) == len(mapped)
  modules = sorted((ROOT / 'bt_acme').rglob('*.py'))
  packages = {str(path.parent.relative_to(ROOT)) for path in modules}
  assert packages - set(mapped) == set()
  assert [path for path in mapped if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
  'path', [*PAGES, ROOT / 'BUILD.md', ROOT / 'CONTRIBUTING.md'], ids=name_of
)
def test_paths_exist(path):
  text = path.read_text()
  top = 'bt_acme|benchmarks|docs|experiments|launch|scripts|tests'
  named = set(re.findall(rf'`((?:{top})/[\w./]*)`', text))
  missing = {name for name in named if not (ROOT / name).exists()}
  linked = set(re.findall(r'\]\(((?!http)[\w./]+)', text))
  missing |= {link for link in linked if not (path.parent / link).exists()}
  missing -= {'docs/_build/html'}  # `make docs` writes it.
  # These stand for a file of the reader.
  assert {name for name in missing if 'YOURS' not in name} == set()


def _anchors(path):
  """Returns the anchors that GitHub gives to the headings of a page."""
  lines = path.read_text().splitlines()
  titles = [line.lstrip('# ').lower() for line in lines if line[:1] == '#']
  return {re.sub(r'[^\w -]', '', title).replace(' ', '-') for title in titles}


@pytest.mark.parametrize('path', sorted(ROOT.glob('[A-Z]*.md')), ids=name_of)
def test_anchors_exist_on_github(path):
  links = re.findall(r'\]\(([\w./]*)#([^)]+)\)', path.read_text())
  missing = [
    f'{target}#{anchor}'
    for target, anchor in links
    if anchor not in _anchors(path.parent / target if target else path)
  ]
  assert missing == []


@pytest.mark.parametrize(
  'module',
  ('', '.agents', '.behaviors', '.config', '.environments', '.evaluation'),
)
def test_every_public_name_has_an_example(module):
  code = '\n'.join(
    block.code
    for path in PAGES
    for block in blocks(path)
    if block.language == 'python' and not block.mark
  )
  exported = importlib.import_module(f'bt_acme{module}').__all__
  package = f'bt_acme{module}'.split('.')[-1]
  used = set(re.findall(rf'\b{package}\.(\w+)', code))
  for imported in re.findall(rf'from bt_acme{module} import (.+)', code):
    used.update(re.findall(r'\w+', imported))
  assert set(exported) - used - {'__version__'} == set()
