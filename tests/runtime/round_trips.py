"""Serialization round trips."""

import io

from bt_acme.runtime import serialization


def round_trip(value):
  """Writes and reads a value."""
  file = io.BytesIO()
  serialization.dump(value, file)
  file.seek(0)
  return serialization.load(file, len(file.getvalue()))
