"""Reads the tables in `data`, which describe the paper."""

import pathlib
from typing import Dict, List

from bt_acme.evaluation import tables

FOLDER = pathlib.Path(__file__).with_name('data')


def rows(name: str) -> List[Dict[str, str]]:
  """Returns the rows of a table as dictionaries, without comments."""
  return tables.read_csv(FOLDER / name)
