"""Serialization round trips."""

import io
import json

from bt_acme.runtime import serialization


def round_trip(value):
  """Encodes and decodes a value."""
  encoded = serialization.encode(value)
  tree = json.loads(json.dumps(encoded.tree))
  return serialization.decode(
    tree, encoded.sizes, io.BytesIO(b''.join(encoded.parts))
  )
