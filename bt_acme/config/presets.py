"""Presets: named settings for scales other than the paper's.

A preset only replaces defaults: what a user sets wins. This prints what each of
them changes:

  python -m bt_acme.config.presets
"""

from typing import Any, Dict, Mapping, NamedTuple

from bt_acme.config import agent, names
from bt_acme.config import run as run_config


class Preset(NamedTuple):
  """What a preset is made for, and the settings that it changes."""

  purpose: str
  settings: Mapping[str, Any]


_SMALL_REPLAY: Mapping[str, Any] = {
  'trace_length': 40,
  'sequence_period': 20,
  'min_replay_size': 100,
  'max_replay_size': 5_000,
}

PRESETS: Mapping[str, Preset] = {
  'paper': Preset(
    'the scale of Campos et al. 2021: hundreds of actors and an accelerator',
    {},
  ),
  'laptop': Preset(
    "the paper's network on Atari, on a few cores in an hour",
    {
      **_SMALL_REPLAY,
      'batch_size': 8,
      'samples_per_insert': 1.0,
      'target_update_period': 100,
      'evaluation_period': 50_000,
      'evaluation_episodes': 1,
    },
  ),
  'minigrid': Preset(
    'MiniGrid, on two cores in minutes',
    {
      **_SMALL_REPLAY,
      'batch_size': 16,
      'samples_per_insert': 12.0,
      'learning_rate': 5e-4,
      'target_update_period': 200,
      'variable_update_period': 16,
      'torso_size': 64,
      'lstm_size': 64,
      'head_size': 64,
      'memory_capacity': 2_000,
      'evaluation_period': 20_000,
      'evaluation_episodes': 20,
    },
  ),
}


def get(name: str) -> Dict[str, Any]:
  """Returns a preset's settings; raises ValueError for an unknown preset."""
  if name not in PRESETS:
    raise ValueError(
      f'preset={name!r} is unknown: {names.suggest(name, sorted(PRESETS))}'
    )
  return dict(PRESETS[name].settings)


def describe(name: str) -> str:
  """Returns a preset's purpose and changes as text, a line a setting."""
  defaults = {
    **names.defaults_of(agent.NGUConfig),
    **names.defaults_of(agent.BTConfig),
    **names.to_dict(run_config.RunConfig()),
  }
  changes = [
    f'  {setting}={value} instead of {defaults[setting]}'
    for setting, value in get(name).items()
  ]
  return '\n'.join(
    [
      f'{name}, for {PRESETS[name].purpose}:',
      *(changes or ['  It changes nothing.']),
    ]
  )


if __name__ == '__main__':
  print('\n\n'.join(map(describe, PRESETS)))
