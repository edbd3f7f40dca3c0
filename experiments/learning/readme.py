"""Puts the tables of the published results into experiments/README.md."""

import pathlib

from bt_acme import files
from experiments.learning import claims, report, results

PATH = pathlib.Path(__file__).parents[1] / 'README.md'

_BEGIN = (
  '<!-- The tables of results.csv: python -m experiments.learning --publish -->'
)
_END = '<!-- End of the tables. -->'


def text() -> str:
  """Makes the tables of all claims from the published results."""
  tables = claims.tables()
  found = results.read(results.jobs(tables), [results.PUBLISHED])
  return report.report(tables, found)


def rendered(readme: str) -> str:
  """Returns the README with the tables of now."""
  before, rest = readme.split(_BEGIN)
  _, after = rest.split(_END)
  return f'{before}{_BEGIN}\n\n{text()}\n\n{_END}{after}'


def render() -> None:
  """Writes the tables of now into the README."""
  files.write_text(PATH, rendered(PATH.read_text()))
