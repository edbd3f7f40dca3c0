"""Tests that built and decoded sequences contain the original steps."""

import numpy as np
import pytest
import zstandard

from bt_acme.replay import blocks, compression
from tests.replay import episodes

P, T = episodes.PERIOD, episodes.LENGTH
LENGTHS = (1, 3, P - 1, P, P + 1, T - 1, T, T + 1, T + P, 2 * T + 3)


@pytest.mark.parametrize('truncated', (False, True))
@pytest.mark.parametrize('num_steps', LENGTHS)
@pytest.mark.parametrize(
  'sizes, period',
  (
    ((4, 1), P),
    ((1, 3), P),
    ((3, 2), P),
    ((4, 1, 0), P),  # No LSTM.
    ((4, 1), T),  # One block per sequence.
  ),
)
def test_sequences_hold_their_steps(sizes, period, num_steps, truncated):
  written = episodes.Written(
    episodes.make_layout(*sizes, sequence_period=period)
  )
  episode = episodes.make_episode(
    np.random.default_rng(num_steps),
    num_steps,
    written.layout,
    truncated=truncated,
  )
  episodes.assert_is_built(episode, written)


@pytest.mark.parametrize('cut', ['short', 'long', 'truncated', 'no block'])
def test_an_incomplete_block_is_rejected(cut):
  """Accepting the block would leave parts of the previous block in memory."""
  layout = episodes.make_layout()
  size = blocks.block_dtype(layout).itemsize
  data = np.random.default_rng(0).integers(256, size=size, dtype=np.uint8)
  whole = compression.encode_block(data)
  payload = {
    'short': compression.encode_block(data[:-1]),
    'long': compression.encode_block(np.append(data, data[:1])),
    'truncated': whole[:-10],
    'no block': b'',
  }[cut]
  decoder = compression.SequenceDecoder(layout)
  state = np.zeros((2, layout.lstm_size), np.float32)
  batch = blocks.empty_batch(layout, 1)
  decoder.decode_into([whole], state, batch=batch, index=0)
  with pytest.raises((ValueError, zstandard.ZstdError)):
    decoder.decode_into([payload], state, batch=batch, index=0)
