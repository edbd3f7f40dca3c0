"""Updates the tables of published results in experiments/README.md."""

import pathlib

from bt_acme import files
from experiments.learning import claims, report, results

PATH = pathlib.Path(__file__).parents[1] / 'README.md'

_BEGIN = (
  '<!-- The tables of results.csv: python -m experiments.learning --publish -->'
)
_END = '<!-- End of the tables. -->'


def text() -> str:
  """Returns the tables of all claims, made from the published results."""
  tables = claims.tables()
  found = results.read(results.jobs(tables), [results.PUBLISHED])
  return report.report(tables, found)


def rendered(readme: str) -> str:
  """Returns the README with updated tables."""
  before, rest = readme.split(_BEGIN)
  _, after = rest.split(_END)
  return f'{before}{_BEGIN}\n\n{text()}\n\n{_END}{after}'


def render() -> None:
  """Updates the tables in the README file."""
  files.write_text(PATH, rendered(PATH.read_text()))
