"""Generates notebooks/*.ipynb from notebooks/*.py: `make notebooks`.

A cell keeps its outputs as long as its code does not change. To produce new
outputs, execute notebooks in the environment that they are for:

  .venv-core/bin/python scripts/make_notebooks.py --execute quickstart
"""

import ast
import os
import pathlib
import sys
import tempfile
from typing import Any, Dict, List

import jupytext
import nbclient
import nbformat

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / 'notebooks'


def make(source: pathlib.Path) -> str:
  """Returns the text of the notebook.

  Args:
    source: the script, with cells in jupytext's percent format.
  """
  notebook = jupytext.read(source, fmt='py:percent')
  notebook.metadata = {'kernelspec': notebook.metadata['kernelspec']}
  notebook.nbformat_minor = 5
  for index, cell in enumerate(notebook.cells):
    cell['id'] = f'{source.stem}-{index}'
  _set_outputs(notebook, _outputs(source.with_suffix('.ipynb')))
  return nbformat.writes(notebook) + '\n'


def execute(source: pathlib.Path) -> None:
  """Executes a notebook in an empty directory and stores its outputs."""
  notebook = nbformat.reads(make(source), as_version=4)
  with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder) / 'logs').symlink_to(FOLDER / 'logs')
    nbclient.NotebookClient(
      notebook,
      timeout=3_600,
      kernel_name='python3',
      resources={'metadata': {'path': folder}},
    ).execute(env={**os.environ, 'PYTHONPATH': str(ROOT)})
  for cell in notebook.cells:
    cell.metadata = {}  # Times of the execution.
  source.with_suffix('.ipynb').write_text(nbformat.writes(notebook) + '\n')
  source.with_suffix('.ipynb').write_text(make(source))


def _tidy(outputs: List[Any]) -> List[Any]:
  """Joins printed outputs; of a progress bar, keeps the last line."""
  tidy: List[Any] = []
  for output in outputs:
    if output.output_type != 'stream':
      tidy.append(output)
      continue
    if tidy and tidy[-1].get('name') == output.name:
      output.text = tidy.pop().text + output.text
    lines = [line.rpartition('\r')[2] for line in output.text.split('\n')]
    # OpenCV complains about the container format, without consequences.
    lines = [line for line in lines if not line.startswith('OpenCV: ')]
    output.text = '\n'.join(lines)
    if output.text.strip():
      tidy.append(output)
  return tidy


def _code_cells(notebook: Any) -> List[Any]:
  return [cell for cell in notebook.cells if cell.cell_type == 'code']


def _meaning(code: str) -> str:
  """Returns what decides the outputs of a cell: no comments, no docstrings."""
  tree = ast.parse(code)
  for node in ast.walk(tree):
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
      if ast.get_docstring(node) is not None:
        del node.body[0]
  return ast.dump(tree)


def _outputs(path: pathlib.Path) -> Dict[str, Any]:
  """Returns the stored outputs and counts, by the meaning of the code."""
  if not path.exists():
    return {}
  cells = _code_cells(nbformat.read(path, as_version=4))
  return {_meaning(cell.source): cell for cell in cells if cell.outputs}


def _set_outputs(notebook: Any, stored: Dict[str, Any]) -> None:
  for cell in _code_cells(notebook):
    old = stored.get(_meaning(cell.source))
    if old is not None:
      cell.outputs = _tidy(old.outputs)


def main() -> None:
  """Writes all notebooks, and executes those that are named."""
  sources = sorted(FOLDER.glob('*.py'))
  if sys.argv[1:2] == ['--execute']:
    for name in sys.argv[2:]:
      execute(FOLDER / f'{name}.py')
  for source in sources:
    source.with_suffix('.ipynb').write_text(make(source))


if __name__ == '__main__':
  main()
