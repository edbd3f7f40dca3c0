"""Settings of the Q-network (Campos et al. 2021 take Agent57's)."""

import dataclasses

from bt_acme.config import checks

# The largest number of units of a layer, 32 times that of the paper. An LSTM of
# so many has 2 billion weights.
LARGEST_LAYER = 16_384


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
  """The Q-network: a convolutional torso, an LSTM and a dueling head."""

  torso: str = checks.setting(
    'auto',
    "The convolutions of the torso: `nature` has DQN's three, without padding, "
    'for frames of 84x84 pixels; `workshop` has the two of the first DQN, '
    'with a third of the multiplications; `small` is for observations below 36 '
    'pixels a side; `auto` chooses `nature` or `small` by the size of the '
    'observation.',
    choices=('auto', 'nature', 'workshop', 'small'),
  )
  torso_size: int = checks.setting(
    512,
    'The fully connected layer after the convolutions has this many units.',
    above=0,
    largest=LARGEST_LAYER,
  )
  lstm_size: int = checks.setting(
    512,
    'The LSTM has this many units; 0 leaves the LSTM out.',
    minimum=0,
    hint='0 leaves the LSTM out.',
    largest=LARGEST_LAYER,
  )
  head_size: int = checks.setting(
    512,
    'Each of the two streams of the dueling head has this many hidden units.',
    above=0,
    largest=LARGEST_LAYER,
  )
  reward_input: str = checks.setting(
    'tanh',
    'How the previous reward enters the network: through `tanh`, through the '
    '`signed_hyperbolic` h of value rescaling, or `raw`. Pre-training and '
    'transfer must agree on it. The papers do not say which it is.',
    choices=('tanh', 'signed_hyperbolic', 'raw'),
  )
  torso_dtype: str = checks.setting(
    'float32',
    'The convolutions and the layer after them compute in `float32` or in '
    '`bfloat16`; the rest of the network always computes in float32.',
    choices=('float32', 'bfloat16'),
  )

  def __post_init__(self) -> None:
    checks.check(self)
