"""Presets: named settings for scales other than the paper's.

A preset replaces defaults; settings of the user override a preset. Every preset
works for both pre-training and transfer: an agent ignores settings that it does
not have, and some settings apply only to pre-training or only to learning a
task. This command prints the changes of all presets:

  python -m bt_acme.config.presets
"""

from typing import Any, Mapping, NamedTuple

from bt_acme.config import agent, names, transfer
from bt_acme.config import run as run_config


class Preset(NamedTuple):
  """The purpose of a preset and the settings that it changes.

  Attributes:
    purpose: a description that follows the word "for".
    settings: settings for every agent that has them.
    pretraining_settings: settings for the pre-training agent, NGU.
    task_settings: settings for the agents that learn a task, R2D2 and BT.
  """

  purpose: str
  settings: Mapping[str, Any]
  pretraining_settings: Mapping[str, Any] = {}
  task_settings: Mapping[str, Any] = {}

  @property
  def all_settings(self) -> list[tuple[str, Any, str]]:
    """Tuples of setting, value, and a text that names the agents if limited."""
    return [
      (setting, value, agents)
      for settings, agents in (
        (self.settings, ''),
        (self.pretraining_settings, ', in pre-training'),
        (self.task_settings, ', not in pre-training'),
      )
      for setting, value in settings.items()
    ]


_SMALL_REPLAY: Mapping[str, Any] = {
  'trace_length': 40,
  'sequence_period': 20,
  'min_replay_size': 100,
  'max_replay_size': 5_000,
}

# For short runs on Atari with a few cores.
_SHORT_ATARI: Mapping[str, Any] = {
  **_SMALL_REPLAY,
  'batch_size': 8,
  # Without decay, the first errors would dominate the statistics for an hour.
  'error_decay': 0.001,
}

_MINIGRID: Mapping[str, Any] = {
  **_SMALL_REPLAY,
  # An episode takes 100 steps of all environments, so with more of them, a
  # run of 40,000 steps has fewer episodes in sequence: too few for what the
  # first ones teach to show in later ones.
  'num_actors': 1,
  # A run has few steps to learn from, and few of them earn a reward.
  'batch_size': 16,
  'samples_per_insert': 24.0,
  'learning_rate': 1e-3,
  # Rewards that are 0 and rarely 1 give small gradients, which an epsilon
  # of 1e-4 would damp.
  'adam_epsilon': 1e-7,
  # A run has about 3,000 learner steps, and therefore 75 target updates.
  'target_update_period': 40,
  'variable_update_period': 16,
  'torso_size': 64,
  'lstm_size': 64,
  'head_size': 64,
  'memory_capacity': 2_000,
  # Covers about the last episode of each environment. Without decay, the
  # first errors of a run would dominate all later ones.
  'error_decay': 0.01,
  'evaluation_period': 20_000,
  'evaluation_episodes': 20,
}

# NGU gives a reward at every step, so the value of a state is a sum over
# the horizon. With the paper's horizon of 100 steps, one new cell
# contributes a hundredth, which is too little to learn within minutes.
_MINIGRID_PRETRAINING: Mapping[str, Any] = {'discount': 0.9}

# The reward is about 20 steps away from the states where values start to
# grow.
_MINIGRID_TASK: Mapping[str, Any] = {'trace_decay': 0.9, 'discount': 0.97}

# Between the 40,000 actor steps of the behaviors with which `minigrid` was
# chosen and the 2,000,000 of `minigrid-explorer`.
_LONG_PRETRAINING = 500_000

PRESETS: Mapping[str, Preset] = {
  'paper': Preset(
    'the scale of Campos et al. 2021: 256 environments in 16 processes, and an '
    'accelerator for the learner',
    {},
  ),
  'gpu': Preset(
    "one machine with a GPU and many cores: the paper's scale, with actions "
    'selected on the GPU',
    {
      'inference': 'server',
      # An evaluation on Atari takes one core several minutes.
      'num_evaluators': 2,
    },
  ),
  'laptop': Preset(
    "the paper's network on Atari, on a few cores within an hour",
    {
      **_SHORT_ATARI,
      'num_actors': 2,  # Small machines have only a few cores.
      'samples_per_insert': 1.0,
      'target_update_period': 100,
      'evaluation_period': 50_000,
      'evaluation_episodes': 1,
    },
  ),
  'atari_small': Preset(
    'one Atari game on two cores within hours, with a small network',
    {
      **_SHORT_ATARI,
      # The learner uses one core, and a single actor uses the other.
      'num_actors': 1,
      'torso': 'workshop',
      'torso_size': 128,
      'lstm_size': 128,
      'head_size': 128,
      'samples_per_insert': 4.0,
      'adam_epsilon': 1e-5,
      # A run has about 20,000 learner steps.
      'target_update_period': 100,
      'variable_update_period': 25,
      'evaluation_period': 40_000,
      'evaluation_episodes': 3,
    },
    task_settings={'trace_decay': 0.8},
  ),
  'minigrid': Preset(
    'MiniGrid, on two cores in minutes',
    {
      **_MINIGRID,
      # Episodes have about 100 steps. The paper's distribution of flights is
      # for Atari's thousands of steps: here, most episodes would have no
      # flight, and most flights would end after one step.
      'min_flight_probability': 0.03,
      'flight_exponent': 1.5,
      # An untrained agent stands still or turns on the spot. A behavior whose
      # state has processed such steps no longer explores.
      'flight_behavior_state': 'restart',
      # In an environment with a single layout, a deterministic behavior would
      # show the agent the same states in every episode.
      'behavior_epsilon': 0.1,
    },
    _MINIGRID_PRETRAINING,
    _MINIGRID_TASK,
  ),
  'minigrid_pretrained': Preset(
    'MiniGrid, with a behavior that was pre-trained at length, such as '
    '`minigrid-explorer`',
    {
      **_MINIGRID,
      # `behavior_epsilon` and `flight_behavior_state` keep their defaults: more
      # random actions may spoil most episodes of the behavior, and its state
      # tells it what happened before a flight.
      #
      # The agent follows the behavior unless its own action is clearly better.
      'extra_action_margin': 0.1,
      # Episodes with hardly any flights show the agent where it would get
      # stuck. If flights always rescue it, those states look valuable.
      'min_flight_probability': 0.002,
      'flight_exponent': 1.5,
      # A behavior that fails alone may succeed after a few random actions.
      'flight_epsilon': 0.3,
    },
    _MINIGRID_PRETRAINING,
    _MINIGRID_TASK,
  ),
}


def get(
  name: str, config_class: type, given: names.Values | None = None
) -> dict[str, Any]:
  """Returns those settings of a preset that a configuration has.

  Settings that have no effect with those of the user are omitted.

  Args:
    name: the name of the preset.
    config_class: the configuration, such as `NGUConfig`, possibly with
      additional groups.
    given: the settings of the user, which override those of the preset.

  Raises:
    ValueError: for an unknown preset.
  """
  if name not in PRESETS:
    raise ValueError(
      f'preset={name!r} is unknown: {names.suggest(name, sorted(PRESETS))}'
    )
  preset = PRESETS[name]
  explores = 'intrinsic' in names.groups(config_class)
  settings = {
    **preset.settings,
    **(preset.pretraining_settings if explores else preset.task_settings),
  }
  known = names.settings_of(config_class)
  values = {**names.defaults_of(config_class), **settings, **(given or {})}
  unused = [*transfer.unused(values)]
  if values.get('lp_launch_type') == 'in_process':
    unused += run_config.OF_NODES
  return {k: v for k, v in settings.items() if k in known and k not in unused}


def automatic(torso: str, pretraining_steps: int = 0) -> str:
  """Returns the preset that `preset='auto'` selects in the Python interface.

  Args:
    torso: the torso that `NetworkConfig.torso='auto'` selects.
    pretraining_steps: the number of actor steps for which the behavior to
      transfer was pre-trained; 0 without such a behavior.
  """
  if torso == 'nature':
    return 'atari_small'
  at_length = pretraining_steps >= _LONG_PRETRAINING
  return 'minigrid_pretrained' if at_length else 'minigrid'


def describe(name: str) -> str:
  """Returns the purpose and changes of a preset, one line per setting."""
  preset = PRESETS[name]
  defaults = {
    **names.defaults_of(agent.NGUConfig),
    **names.defaults_of(agent.BTConfig),
    **names.to_dict(run_config.RunConfig()),
  }
  changes = [
    f'  {setting}={value} instead of {defaults[setting]}{agents}'
    for setting, value, agents in preset.all_settings
  ]
  title = f'{name}, for {preset.purpose}:'
  return '\n'.join([title, *(changes or ['  No changes.'])])


if __name__ == '__main__':
  print('\n\n'.join(map(describe, PRESETS)))
