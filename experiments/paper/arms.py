"""The paper's algorithms: each one a script with flags, and what it needs."""

from typing import Any, Mapping, NamedTuple, Tuple

from bt_acme.config import names
from experiments.harness import runs


class Arm(NamedTuple):
  """An algorithm of the paper.

  Attributes:
    script: what trains it.
    stage: what its runs are.
    settings: the flags that make it this algorithm.
    needs: flags that take the policy of a pre-training, with its arm.
  """

  script: str
  stage: str
  settings: Mapping[str, Any] = {}
  needs: Tuple[Tuple[str, str], ...] = ()


def _pretraining(reward: str) -> Arm:
  return Arm('run_ngu', runs.PRETRAINING, {'intrinsic_reward': reward})


def _r2d2(init: str = '') -> Arm:
  if not init:
    return Arm('run_r2d2', runs.TRANSFER)
  needs = (('init_from', 'ngu'),)
  return Arm('run_r2d2', runs.TRANSFER, {'init': init}, needs)


def _bt(behavior: str = 'ngu', init: str = '', **settings: Any) -> Arm:
  needs = [('behavior', behavior)]
  if init:
    needs.append(('init_from', behavior))
    settings['init'] = init
  return Arm('run_bt', runs.TRANSFER, settings, tuple(needs))


ARMS: Mapping[str, Arm] = {
  'ngu': _pretraining('ngu'),
  'rnd': _pretraining('rnd'),
  'constant': _pretraining('constant'),
  'r2d2': _r2d2(),
  'ez': Arm(
    'run_bt',
    runs.TRANSFER,
    {
      'behavior': 'action_repeat',
      'extra_action': False,
      # What repeats an action has no state and no epsilon, whatever the preset
      # says about those of an exported behavior.
      'flight_behavior_state': 'advance',
      'behavior_epsilon': 0.01,
    },
  ),
  'bt_ngu': _bt(),
  'bt_rnd': _bt('rnd'),
  'bt_flights': _bt(extra_action=False),
  'bt_action': _bt(flights=False),
  'r2d2_partial': _r2d2('partial'),
  'r2d2_full': _r2d2('full'),
  'bt_ngu_partial': _bt(init='partial'),
  'bt_ngu_full': _bt(init='full'),
}


def get(name: str) -> Arm:
  """Returns an arm; raises ValueError for an unknown one."""
  if name not in ARMS:
    raise ValueError(f'arms={name!r} is unknown: {names.suggest(name, ARMS)}')
  return ARMS[name]
