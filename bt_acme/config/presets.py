"""Settings for scales other than the paper's, by name.

A preset only replaces defaults: what a user sets wins. `paper` is empty.
"""

from typing import Any, Dict, Mapping

_SMALL_REPLAY: Mapping[str, Any] = {
  'trace_length': 40,
  'sequence_period': 20,
  'min_replay_size': 100,
  'max_replay_size': 5_000,
}

PRESETS: Mapping[str, Mapping[str, Any]] = {
  # Campos et al. 2021, for hundreds of actors and an accelerator.
  'paper': {},
  # The paper's network on Atari, for a machine of a few cores and an hour.
  'laptop': {
    **_SMALL_REPLAY,
    'batch_size': 8,
    'samples_per_insert': 1.0,
    'target_update_period': 100,
    'evaluation_period': 50_000,
    'evaluation_episodes': 1,
  },
  # MiniGrid on two cores in minutes.
  'minigrid': {
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
}


def get(name: str) -> Dict[str, Any]:
  """A preset's settings; raises ValueError for an unknown one."""
  if name not in PRESETS:
    raise ValueError(
      f'preset={name!r} is unknown: choose from {sorted(PRESETS)}.'
    )
  return dict(PRESETS[name])
