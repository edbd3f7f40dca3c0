"""Generates notebooks/*.ipynb from notebooks/*.py: `make notebooks`.

The cells have no outputs, and fixed IDs, so that the notebooks change only
where their sources do.
"""

import pathlib

import jupytext
import nbformat

FOLDER = pathlib.Path(__file__).resolve().parents[1] / 'notebooks'


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
  return nbformat.writes(notebook) + '\n'


def main() -> None:
  """Writes all notebooks."""
  for source in sorted(FOLDER.glob('*.py')):
    source.with_suffix('.ipynb').write_text(make(source))


if __name__ == '__main__':
  main()
