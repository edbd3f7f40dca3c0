"""Settings of the Q-network (Campos et al. 2021 use Agent57's network)."""

import dataclasses

from bt_acme.config import checks

# The maximum number of units of a layer, 32 times the number in the paper. An
# LSTM with this many units has 2 billion weights.
LARGEST_LAYER = 16_384


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
  """The Q-network: a convolutional torso, an LSTM and a dueling head.

  Attributes:
    torso: Convolutions of the torso: `nature` uses the three layers of DQN,
      without padding, for frames of 84x84 pixels; `workshop` uses the two
      layers of the first DQN, with a third of the multiplications; `small` is
      for observations below 36 pixels a side; `auto` selects `nature` or
      `small` by the size of the observation.
    torso_size: Number of units of the fully connected layer after the
      convolutions. The text of R2D2 mentions no such layer; 512 follows the
      implementation of SEED.
    lstm_size: Number of units of the LSTM; 0 removes the LSTM.
    head_size: Number of hidden units of each of the two streams of the dueling
      head.
    reward_input: Transformation of the previous reward that the network takes
      as an input: `tanh`, `signed_hyperbolic` (the function h of value
      rescaling with an epsilon of 0.001), or none (`raw`). With init_from, it
      must be the same as in pre-training. The papers do not specify it.
    torso_dtype: Data type in which the convolutions and the next layer compute,
      `float32` or `bfloat16`. The rest of the network uses float32, with
      products in `matmul_precision`.
    matmul_precision: Precision of all products and convolutions, in the learner
      and in everything that acts. `default` is the fastest of the device:
      bfloat16 on a TPU, TensorFloat-32 on an NVIDIA GPU, float32 on a CPU.
      `tensorfloat32` is more precise than `default` on a TPU; `float32` makes
      all devices compute the same.

  Example:
    ```python
    from bt_acme import config

    config.R2D2Config(network=config.NetworkConfig(lstm_size=128))
    ```
  """

  torso: str = checks.choice('auto', 'nature', 'workshop', 'small')
  torso_size: int = checks.setting(512, above=0, largest=LARGEST_LAYER)
  lstm_size: int = checks.setting(
    512, minimum=0, hint='0 removes the LSTM.', largest=LARGEST_LAYER
  )
  head_size: int = checks.setting(512, above=0, largest=LARGEST_LAYER)
  reward_input: str = checks.choice('tanh', 'signed_hyperbolic', 'raw')
  torso_dtype: str = checks.choice('float32', 'bfloat16')
  matmul_precision: str = checks.choice('default', 'tensorfloat32', 'float32')

  def __post_init__(self) -> None:
    checks.check(self)
