"""Serialization round trips."""

import io
import json

from bt_acme.runtime import serialization


def round_trip(value):
  """Encodes and decodes a value."""
  tree, parts = serialization.encode(value)
  sizes = [memoryview(part).nbytes for part in parts]
  return serialization.decode(
    json.loads(json.dumps(tree)), sizes, io.BytesIO(b''.join(parts))
  )
