"""Parameters that a run is given: `--init_from`, `--init`, `--extra_init`.

`core.weight_loading` defines which weights `partial` and `full` copy.
"""

import dataclasses

import jax

from bt_acme import assembly, behaviors
from bt_acme.config import checks
from bt_acme.core import types, weight_loading


@dataclasses.dataclass(frozen=True)
class WeightsConfig:
  """Settings of the initial weights.

  Attributes:
    init_from: Directory of an exported behavior whose Q-network provides the
      initial weights. Empty starts from random weights.
    init: Weights to load: `partial` loads the torso and the LSTM; `full` also
      loads the head. Without behavior transfer, `full` is fine-tuning.
    extra_init: Initial weights of the extra action if init=full: `fresh` for
      random weights, or the `mean` over the other actions. The paper does not
      specify it.
  """

  init_from: str = ''
  init: str = checks.choice('full', 'partial')
  extra_init: str = checks.choice('fresh', 'mean')

  def __post_init__(self) -> None:
    checks.check(self)
    if not self.init_from:
      checks.require_defaults(
        self, 'init', 'extra_init', without="init_from=''"
      )


def load(
  weights: WeightsConfig,
  source: behaviors.Exported,
  agent: assembly.Agent,
  seed: int,
) -> types.Params:
  """Returns initial parameters of the Q-network.

  Args:
    weights: the settings of the initial weights.
    source: the behavior in `init_from`.
    agent: the agent to initialize.
    seed: the seed of the weights that are not loaded.

  Raises:
    ValueError: if the behavior has another architecture.
  """
  source.validate(agent.spec.observation_shape, agent.spec.num_actions)
  had, has = (a.config.network.reward_input for a in (source.agent, agent))
  checks.require(
    had == has,
    f'init_from={weights.init_from!r} was trained with reward_input={had!r}, '
    f'but this agent has reward_input={has!r}. Set --reward_input={had}.',
  )
  try:
    return weight_loading.transfer(
      source.variables.agent,
      agent.network.init(jax.random.key(seed)),
      init=weights.init,
      extra_init=weights.extra_init,
    )
  except ValueError as error:
    is_full = weights.init == 'full'
    other = ', or --init=partial if only the head differs' if is_full else ''
    raise ValueError(
      f'init_from={weights.init_from!r}: {error} Use the same network sizes'
      f'{other}.'
    ) from error
