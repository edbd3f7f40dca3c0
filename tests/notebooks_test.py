"""Executes the notebooks in a fast mode, with the installed packages."""

import importlib.util
import os
import pathlib
import re
import runpy
import sys

import jupytext
import nbclient
import nbformat
import pytest
import traitlets.config

ROOT = pathlib.Path(__file__).parents[1]
NOTEBOOKS = {path.stem: path for path in (ROOT / 'notebooks').glob('*.py')}
HAS_STACK = importlib.util.find_spec('acme') is not None
# Only this notebook needs dm-acme. The others run wherever JAX does, and
# `make test` executes them with the packages of Colab.
NEEDS_STACK = {'bring_your_own_agent'}
HERE = sorted(NEEDS_STACK if HAS_STACK else set(NOTEBOOKS) - NEEDS_STACK)


_make = runpy.run_path(str(ROOT / 'scripts' / 'make_notebooks.py'))['make']


def _outputs(notebook):
  code = [cell for cell in notebook.cells if cell.cell_type == 'code']
  return [output for cell in code for output in cell.outputs]


@pytest.mark.parametrize('name', sorted(NOTEBOOKS))
def test_it_is_made_from_its_source_has_outputs_and_opens_in_colab(name):
  path = NOTEBOOKS[name].with_suffix('.ipynb')
  assert path.read_text() == _make(NOTEBOOKS[name]), 'Run `make notebooks`.'
  outputs = _outputs(jupytext.read(path))
  assert outputs, f'Run scripts/make_notebooks.py --execute {name}.'
  assert all(output.output_type != 'error' for output in outputs)
  cells = jupytext.read(NOTEBOOKS[name]).cells
  assert f'notebooks/{name}.ipynb' in cells[0].source
  assert 'colab-badge.svg' in cells[0].source
  assert any('git+https' in cell.source for cell in cells[:4])


def test_outputs_depend_on_earlier_cells(tmp_path):
  source = tmp_path / 'name.py'
  text = NOTEBOOKS['paper_figures'].read_text().partition('# %%')[0]
  source.write_text(text + '# %%\nx = 1  # One.\n\n# %%\nx\n')
  notebook = jupytext.reads(_make(source), fmt='ipynb')
  for cell in notebook.cells:
    cell.outputs = [nbformat.v4.new_output('stream', text='1')]
  nbformat.write(notebook, source.with_suffix('.ipynb'))
  assert _make(source).count('output_type') == 2
  source.write_text(source.read_text().replace('One', 'A comment'))
  assert _make(source).count('output_type') == 2
  source.write_text(source.read_text().replace('x = 1', 'x = 2'))
  assert _make(source).count('output_type') == 0


# Makes runs small, like those of the documentation.
_SMALL = """
import pytest
from tests import small_examples

small_examples.make_runs_small(pytest.MonkeyPatch())
"""


def _execute(name, make_folder):
  """Executes a notebook in an empty directory and returns its outputs."""
  source = NOTEBOOKS[name].read_text()
  # Just enough steps for the learner to start.
  source = re.sub(r'\b[14]0_000\b', '2_000', source)
  source = source.replace('5_000', '500').replace('20_000', '1_100')
  source = source.replace('range(3)', 'range(2)').replace('(20)', '(2)')
  notebook = jupytext.reads(source, fmt='py:percent')
  if 'max_actor_steps' in source:
    notebook.cells.insert(0, nbformat.v4.new_code_cell(_SMALL))
  folder = make_folder(name)
  (folder / 'logs').symlink_to(ROOT / 'notebooks' / 'logs')
  client = nbclient.NotebookClient(
    notebook,
    # Sockets in files, because the kernel of another test could occupy a port
    # before this one binds it.
    config=traitlets.config.Config(
      KernelManager={
        'transport': 'ipc',
        'ip': str(make_folder('kernel') / 'ipc'),
      }
    ),
    timeout=300,
    startup_timeout=300,  # The first start in a new environment is slow.
    kernel_name='python3',
    resources={'metadata': {'path': str(folder)}},
  )
  fast = '--xla_backend_optimization_level=0'  # Compiling takes most time.
  fast += ' --xla_cpu_parallel_codegen_split_count=1'
  variables = {'PYTHONPATH': str(ROOT), 'XLA_FLAGS': fast}
  client.execute(env={**os.environ, **variables})
  return _outputs(notebook)


def _data(outputs, kind):
  return [o['data'][kind] for o in outputs if kind in o.get('data', {})]


_EXPECTED = {
  # Numbers of figures and videos.
  'quickstart': (4, 2),
  'bring_your_own_behavior': (1, 2),
  'bring_your_own_agent': (0, 0),
  'paper_figures': (2, 0),
}


@pytest.mark.parametrize('name', HERE)
def test_it_runs(name, tmp_path_factory):
  outputs = _execute(name, tmp_path_factory.mktemp)
  figures, videos = _EXPECTED[name]
  assert len(_data(outputs, 'image/png')) == figures
  assert sum('<video' in text for text in _data(outputs, 'text/html')) == videos
  printed = ''.join(o['text'] for o in outputs if o.output_type == 'stream')
  assert 'Warning' not in printed
  if name == 'quickstart':
    assert printed.count('4 episodes') == 2
    assert f'Python        {sys.version_info.major}.' in printed
  if name == 'bring_your_own_agent':
    assert re.search(r'DQN solves \d of 2.*\nDQN \+ BT.* \d of 2', printed)
    alone, transfer = re.findall(r'returns: (\S+)', printed)
    assert float(alone) < 50 < float(transfer)
  if name == 'paper_figures':
    assert 'R2D2 + BT' in printed and '176%' in printed
