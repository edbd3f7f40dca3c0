"""`--init_from`, `--init` and `--extra_init`: weights to start a run from.

`core.weight_transfer` defines which weights `partial` and `full` copy.
"""

import dataclasses
from typing import Optional

import jax

from bt_acme import assembly, behaviors
from bt_acme.config import checks
from bt_acme.core import types, weight_transfer


@dataclasses.dataclass(frozen=True)
class WeightsConfig:
  """The weights to start from."""

  init_from: str = checks.setting(
    '',
    'The folder of an exported behavior whose Q-network the run starts from; '
    'without a folder it starts from fresh weights.',
  )
  init: str = checks.setting(
    'full',
    'Which weights are loaded: `partial` loads torso and LSTM; `full` loads '
    'the head too, which without behavior transfer is fine-tuning.',
    choices=('full', 'partial'),
  )
  extra_init: str = checks.setting(
    'fresh',
    "How the extra action's weights start where init=full loads the others: "
    '`fresh`, or as the `mean` of the others. The paper does not say.',
    choices=('fresh', 'mean'),
  )

  def __post_init__(self) -> None:
    checks.check(self)
    for name in ('init', 'extra_init'):
      value = getattr(self, name)
      checks.require(
        bool(self.init_from) or value == getattr(type(self), name),
        f"{name}={value!r} says which weights to load, and init_from='' loads "
        'none: give a folder that run_ngu.py exported.',
      )


def load(
  weights: WeightsConfig,
  agent: assembly.Agent,
  seed: int,
  source: Optional[behaviors.Exported] = None,
) -> Optional[types.Params]:
  """Returns parameters of the Q-network to start from; None for fresh ones.

  Args:
    weights: the folder to load from, and which of its weights to load.
    agent: the agent that is to start with them.
    seed: the seed of the weights that are not loaded.
    source: what is in the folder, if it was loaded already.

  Raises:
    ValueError: if the folder cannot be read or holds another architecture.
  """
  if not weights.init_from:
    return None
  if source is None:
    source = behaviors.Exported(weights.init_from, setting='init_from')
  source.validate(agent.spec.observation_shape, agent.spec.num_actions)
  had, has = (a.config.network.reward_input for a in (source.agent, agent))
  checks.require(
    had == has,
    f'init_from={weights.init_from!r} was trained with reward_input={had!r}, '
    f'and this agent has reward_input={has!r}: set --reward_input={had}.',
  )
  try:
    return weight_transfer.transfer(
      source.variables.agent,
      agent.network.init(jax.random.key(seed)),
      init=weights.init,
      extra_init=weights.extra_init,
    )
  except ValueError as error:
    raise ValueError(
      f'init_from={weights.init_from!r}: {error} Set the sizes of the network '
      'to those that it has there; --init=partial leaves out the head.'
    ) from error
