"""Tests the bytes of a block."""

import threading

import numpy as np

from bt_acme.replay import blocks, compression
from tests.replay import episodes

P = episodes.PERIOD


def test_positions_of_the_fields():
  """Fields are adjacent, wide types first, so that every array is aligned."""
  layout = episodes.make_layout(num_stacked=2, channels=3)
  dtype = blocks.block_dtype(layout)
  start = 0
  expected = (
    ('prev_action', np.int32, (P + 1,)),
    ('prev_reward', np.float32, (P + 1,)),
    ('action', np.int32, (P,)),
    ('choice', np.int32, (P,)),
    ('probability', np.float32, (P,)),
    ('reward', np.float32, (P,)),
    ('discount', np.float32, (P,)),
    ('valid', np.float32, (P,)),
    ('source', np.uint8, (P,)),
    ('frames', np.uint8, (2 + P, 5, 6, 3)),
  )
  assert dtype.names == tuple(name for name, *_ in expected)
  for name, *base_and_shape in expected:
    field, offset = dtype.fields[name]
    assert (field.base, field.shape, offset) == (*base_and_shape, start), name
    start += field.itemsize
  assert start == dtype.itemsize


def test_compressors_of_many_threads():
  rng = np.random.default_rng(0)
  data = rng.integers(2, size=(8, 100_000), dtype=np.uint8)
  payloads = [None] * 8

  def encode(i):
    payloads[i] = compression.encode_block(data[i])

  threads = [threading.Thread(target=encode, args=(i,)) for i in range(8)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert payloads == [compression.encode_block(row) for row in data]
