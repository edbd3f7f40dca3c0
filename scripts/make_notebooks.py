"""Makes notebooks/*.ipynb of notebooks/*.py: `make notebooks OWNER=name`.

The cells have no outputs, and names of their own, so that the files change only
where their sources do.
"""

import pathlib
import sys

import jupytext
import nbformat

FOLDER = pathlib.Path(__file__).resolve().parents[1] / 'notebooks'


def make(source: pathlib.Path, owner: str = 'OWNER') -> str:
  """Returns the text of the notebook.

  Args:
    source: the script, with cells in jupytext's percent format.
    owner: the account that the repository is published under.
  """
  notebook = jupytext.reads(
    source.read_text().replace('OWNER/bt_acme', f'{owner}/bt_acme'),
    fmt='py:percent',
  )
  notebook.metadata = {'kernelspec': notebook.metadata['kernelspec']}
  notebook.nbformat_minor = 5
  for index, cell in enumerate(notebook.cells):
    cell['id'] = f'{source.stem}-{index}'
  return nbformat.writes(notebook) + '\n'


def main() -> None:
  """Writes all notebooks; the first argument is the owner."""
  for source in sorted(FOLDER.glob('*.py')):
    source.with_suffix('.ipynb').write_text(make(source, *sys.argv[1:2]))


if __name__ == '__main__':
  main()
