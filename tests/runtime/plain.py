"""Values as a saved run gives them back."""

import io
import json

from bt_acme.runtime import serialization


def kept(value):
  """Writes a value and reads it."""
  encoded = serialization.encode(value)
  tree = json.loads(json.dumps(encoded.tree))
  return serialization.decode(
    tree, encoded.sizes, io.BytesIO(b''.join(encoded.parts))
  )
