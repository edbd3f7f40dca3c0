"""Parameters that a run is given: `--init_from`, `--init`, `--extra_init`.

`core.weight_transfer` defines which weights `partial` and `full` copy.
"""

import dataclasses
import functools
from typing import Any, Callable, Dict, Mapping, Optional

import jax

from bt_acme import assembly, behaviors
from bt_acme.behaviors import exported_folder
from bt_acme.config import checks
from bt_acme.core import types, weight_transfer
from bt_acme.runtime import workdir


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
  init: str = checks.setting('full', choices=('full', 'partial'))
  extra_init: str = checks.setting('fresh', choices=('fresh', 'mean'))

  def __post_init__(self) -> None:
    checks.check(self)
    for name in ('init', 'extra_init'):
      value = getattr(self, name)
      checks.require(
        bool(self.init_from) or value == getattr(type(self), name),
        f"{name}={value!r} has no effect with init_from=''. Set init_from to a "
        'directory that run_ngu.py exported.',
      )


def load(
  weights: WeightsConfig,
  agent: assembly.Agent,
  seed: int,
  source: Optional[behaviors.Exported] = None,
) -> Optional[types.Params]:
  """Returns initial parameters of the Q-network; None for random weights.

  Args:
    weights: the settings of the initial weights.
    agent: the agent to initialize.
    seed: the seed of the weights that are not loaded.
    source: the behavior in `init_from`, if it has already been loaded.

  Raises:
    ValueError: if the directory cannot be read, or contains another
      architecture.
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
    f'but this agent has reward_input={has!r}. Set --reward_input={had}.',
  )
  key = jax.random.key(seed)
  shapes = jax.eval_shape(agent.network.init, key)
  transfer = functools.partial(
    weight_transfer.transfer,
    source.variables.agent,
    extra_init=weights.extra_init,
  )
  problem = _problem(transfer, shapes, weights.init)
  if problem:
    advice = 'Use the same network sizes'
    if not _problem(transfer, shapes, 'partial'):
      advice += ', or --init=partial to load the network without its head'
    raise ValueError(f'init_from={weights.init_from!r}: {problem} {advice}.')
  return transfer(agent.network.init(key), init=weights.init)


def _problem(
  transfer: Callable[..., types.Params], shapes: types.Params, init: str
) -> str:
  """Returns why weights cannot be transferred; empty if they can be."""
  try:
    jax.eval_shape(functools.partial(transfer, init=init), shapes)
  except ValueError as error:
    return str(error)
  return ''


def launch_options(
  agent: assembly.Agent,
  seed: int,
  weights: Optional[WeightsConfig],
  source: Optional[behaviors.Exported] = None,
  *,
  recorded: Optional[Mapping[str, Any]] = None,
) -> Dict[str, Any]:
  """Returns the arguments of `run.launch` that depend on given parameters.

  The checksums of parameters are part of a run's identity, and
  `workdir.claim` compares them instead of directories.

  Args:
    agent: the agent. Its behaviors that were not exported are identified by
      their names.
    seed: see `load`.
    weights: the initial weights; None for a run without these settings.
    source: see `load`.
    recorded: the record of the behaviors in the run's identity.

  Raises:
    ValueError: see `load`.
  """
  identity = dict(recorded or {})
  params: Optional[types.Params] = None
  if weights is not None:
    params = load(weights, agent, seed, source)
    identity['weights'] = dataclasses.asdict(weights)
  if agent.behaviors or weights is not None:
    identity[workdir.PARAMS] = {
      'behaviors': [
        behavior.params_sha256
        if isinstance(behavior, behaviors.Exported)
        else behavior.name
        for behavior in agent.behaviors
      ],
      'init_from': exported_folder.read_checksum(weights.init_from)
      if weights and weights.init_from
      else None,
    }
  return {'initial_params': params, 'identity': identity}
