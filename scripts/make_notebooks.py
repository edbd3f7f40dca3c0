"""Generates notebooks/*.ipynb from notebooks/*.py: `make notebooks`.

A cell keeps its outputs as long as neither its code nor that of an earlier cell
changes. To produce new outputs, execute a notebook in its environment:

  .venv-core/bin/python scripts/make_notebooks.py --execute quickstart
"""

import ast
import os
import pathlib
import sys
import tempfile
from typing import Any

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
  _copy_outputs(notebook, source.with_suffix('.ipynb'))
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


def _tidy(outputs: list[Any]) -> list[Any]:
  """Joins printed outputs; of a progress bar, keeps the last line."""
  tidy: list[Any] = []
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


def _meaning(code: str) -> str:
  """Returns the code without what affects no output: comments, docstrings."""
  tree = ast.parse(code)
  for node in ast.walk(tree):
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
      if ast.get_docstring(node) is not None:
        del node.body[0]
  return ast.dump(tree)


def _cells_by_code(notebook: Any) -> dict[tuple[str, ...], Any]:
  """Returns each code cell by all code up to and including the cell.

  Earlier cells belong to the key because the outputs depend on them too.
  """
  cells = [cell for cell in notebook.cells if cell.cell_type == 'code']
  code = [_meaning(cell.source) for cell in cells]
  return {tuple(code[: i + 1]): cell for i, cell in enumerate(cells)}


def _copy_outputs(notebook: Any, path: pathlib.Path) -> None:
  """Copies the outputs of unchanged code from the notebook in `path`."""
  if not path.exists():
    return
  stored = _cells_by_code(nbformat.read(path, as_version=4))
  for code, cell in _cells_by_code(notebook).items():
    if code in stored:
      cell.outputs = _tidy(stored[code].outputs)


def main() -> None:
  """Writes all notebooks, and executes those that are named."""
  sources = sorted(FOLDER.glob('*.py'))
  if sys.argv[1:2] == ['--execute']:
    known = [source.stem for source in sources]
    if unknown := [name for name in sys.argv[2:] if name not in known]:
      sys.exit(f'error: no notebooks {unknown}; choose from {known}')
    for name in sys.argv[2:]:
      execute(FOLDER / f'{name}.py')
  elif sys.argv[1:]:
    sys.exit(
      f'error: {sys.argv[1]} is unknown. Without arguments, all notebooks are '
      'written; --execute NAME ... also executes those that are named.'
    )
  for source in sources:
    source.with_suffix('.ipynb').write_text(make(source))


if __name__ == '__main__':
  main()
