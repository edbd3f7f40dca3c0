"""Serialization round trips, and changes of saved files."""

import io
import json

from bt_acme.runtime import serialization


def round_trip(value):
  """Writes and reads a value."""
  file = io.BytesIO()
  serialization.dump(value, file)
  file.seek(0)
  return serialization.load(file, len(file.getvalue()))


def flip(path, place=None):
  """Changes one bit of a file, in the middle by default."""
  data = bytearray(path.read_bytes())
  data[len(data) // 2 if place is None else place] ^= 1
  path.write_bytes(data)


def edit(path, change):
  """Changes a JSON file with a function; returns the new value."""
  value = json.loads(path.read_text())
  change(value)
  path.write_text(json.dumps(value))
  return value
