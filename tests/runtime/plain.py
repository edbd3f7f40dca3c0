"""Values as a saved run gives them back."""

import io
import json

from bt_acme.runtime import plain_values


def kept(value):
  """Writes a value and reads it."""
  encoded = plain_values.encode(value)
  tree = json.loads(json.dumps(encoded.tree))
  return plain_values.decode(
    tree, encoded.sizes, io.BytesIO(b''.join(encoded.parts))
  )
