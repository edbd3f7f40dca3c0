"""Reads the tables in `data`: what the paper says, shows and claims."""

import pathlib
from typing import Dict, List

from bt_acme.evaluation import tables

FOLDER = pathlib.Path(__file__).with_name('data')


def rows(name: str) -> List[Dict[str, str]]:
  """The rows of a table, by column, without its comments."""
  return tables.read_csv(FOLDER / name)
