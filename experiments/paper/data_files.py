"""Reads the tables in `data`, which describe the paper."""

import pathlib

from bt_acme.evaluation import tables
from experiments.harness import dataset

FOLDER = pathlib.Path(__file__).with_name('data')


def rows(name: str) -> list[dict[str, str]]:
  """Returns the rows of a table as dictionaries, without comments."""
  return tables.read_csv(FOLDER / name)


def typed_rows(
  name: str, row_type: type[dataset.Row]
) -> tuple[dataset.Row, ...]:
  """Returns the rows of a table as named tuples (see `dataset.read_rows`)."""
  return dataset.read_rows(FOLDER / name, row_type)
