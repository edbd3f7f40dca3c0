"""Presets: named settings for scales other than the paper's.

A preset only replaces defaults: what a user sets wins. One preset serves
pre-training and transfer alike: each agent takes the settings that it has, and
some are for pre-training or for learning a task alone. This prints what each
preset changes:

  python -m bt_acme.config.presets
"""

from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from bt_acme.config import agent, names
from bt_acme.config import run as run_config


class Preset(NamedTuple):
  """What a preset is made for, and the settings that it changes.

  Attributes:
    purpose: what the preset is for, in words.
    settings: the settings of every agent that has them.
    pretraining_settings: the settings of the agent that explores, NGU.
    task_settings: the settings of the agents that learn a task, R2D2 and BT.
  """

  purpose: str
  settings: Mapping[str, Any]
  pretraining_settings: Mapping[str, Any] = {}
  task_settings: Mapping[str, Any] = {}

  @property
  def all_settings(self) -> List[Tuple[str, Any, str]]:
    """Every setting with its value, and for which agents it is, in words."""
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

# Small machines have two cores or a few.
_FEW_ACTORS: Mapping[str, Any] = {'num_actors': 2}

# For Atari within hours, on a few cores.
_SHORT_ATARI: Mapping[str, Any] = {
  **_SMALL_REPLAY,
  'batch_size': 8,
  # The first errors would otherwise outweigh the rest of an hour.
  'error_decay': 0.001,
}

PRESETS: Mapping[str, Preset] = {
  'paper': Preset(
    'the scale of Campos et al. 2021: 256 environments in 16 processes, and an '
    'accelerator that learns',
    {},
  ),
  'gpu': Preset(
    "one machine with a GPU and many cores: the paper's scale, where the GPU "
    'also chooses the actions',
    {
      'inference': 'server',
      # An evaluation of Atari takes minutes, on one core.
      'num_evaluators': 2,
    },
  ),
  'laptop': Preset(
    "the paper's network on Atari, on a few cores in an hour",
    {
      **_SHORT_ATARI,
      **_FEW_ACTORS,
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
      # The learner has one core, and a single actor has the other.
      'num_actors': 1,
      'torso': 'workshop',
      'torso_size': 128,
      'lstm_size': 128,
      'head_size': 128,
      'samples_per_insert': 4.0,
      'adam_epsilon': 1e-5,
      # A run has some 20,000 learner steps.
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
      **_SMALL_REPLAY,
      **_FEW_ACTORS,
      # A run has few steps to learn from, and few of them find a reward.
      'batch_size': 16,
      'samples_per_insert': 24.0,
      'learning_rate': 1e-3,
      # Rewards of 0 and rarely 1 make small gradients, which an epsilon of 1e-4
      # would damp.
      'adam_epsilon': 1e-7,
      # A run has some 3,000 learner steps, so that this makes 75 copies.
      'target_update_period': 40,
      'variable_update_period': 16,
      'torso_size': 64,
      'lstm_size': 64,
      'head_size': 64,
      'memory_capacity': 2_000,
      # About the last episode of each environment. Over all of a run, the first
      # errors would outweigh the later ones.
      'error_decay': 0.01,
      # Episodes have about 100 steps. The paper's law of flights is made for
      # Atari's thousands: here, most episodes would see no flight, and a flight
      # would mostly be over after one step.
      'min_flight_probability': 0.03,
      'flight_exponent': 1.5,
      # An agent that has learned nothing yet stands still, or turns on the
      # spot. A behavior whose state has taken that in explores no more.
      'flight_behavior_state': 'restart',
      # In a world of one layout, a behavior that never errs shows the agent the
      # same states in each episode.
      'behavior_epsilon': 0.1,
      'evaluation_period': 20_000,
      'evaluation_episodes': 20,
    },
    # NGU's reward comes in every step, so that the value of a state is a sum
    # over its horizon. With the paper's 100 steps, one new cell is a hundredth
    # of it, which a run of minutes does not learn to tell.
    pretraining_settings={'discount': 0.9},
    # A reward that is about 20 steps away from where values begin to grow.
    task_settings={'trace_decay': 0.9, 'discount': 0.97},
  ),
}


def get(name: str, config_class: type) -> Dict[str, Any]:
  """Returns the settings of a preset that a configuration has.

  Args:
    name: the name of the preset.
    config_class: the configuration, such as `NGUConfig`, or one with more
      groups.

  Raises:
    ValueError: for an unknown preset.
  """
  preset = _find(name)
  explores = 'intrinsic' in names.groups(config_class)
  settings = {
    **preset.settings,
    **(preset.pretraining_settings if explores else preset.task_settings),
  }
  known = names.settings_of(config_class)
  return {k: v for k, v in settings.items() if k in known}


def describe(name: str) -> str:
  """Returns a preset's purpose and changes as text, a line a setting."""
  preset = _find(name)
  defaults = {
    **names.defaults_of(agent.NGUConfig),
    **names.defaults_of(agent.BTConfig),
    **names.to_dict(run_config.RunConfig()),
  }
  changes = [
    f'  {setting}={value} instead of {defaults[setting]}{agents}'
    for setting, value, agents in preset.all_settings
  ]
  return '\n'.join(
    [
      f'{name}, for {preset.purpose}:',
      *(changes or ['  It changes nothing.']),
    ]
  )


def _find(name: str) -> Preset:
  if name not in PRESETS:
    raise ValueError(
      f'preset={name!r} is unknown: {names.suggest(name, sorted(PRESETS))}'
    )
  return PRESETS[name]


if __name__ == '__main__':
  print('\n\n'.join(map(describe, PRESETS)))
