"""Makes the runs of documented examples small."""

import functools

from bt_acme.api import evaluating
from bt_acme.config import presets
from bt_acme.environments import registry

SETTINGS = {
  **dict.fromkeys(('torso_size', 'lstm_size', 'head_size'), 8),
  **{'trace_length': 8, 'sequence_period': 4, 'batch_size': 4},
  **{'min_replay_size': 40, 'num_evaluators': 0, 'samples_per_insert': 1.0},
}
_EPISODES = 4  # The maximum number of episodes of an evaluation.


def make_runs_small(monkeypatch):
  """Makes the presets for MiniGrid and all evaluations tiny."""
  small = {
    name: preset._replace(settings={**preset.settings, **SETTINGS})
    for name, preset in presets.PRESETS.items()
    if name.startswith('minigrid')
  }
  monkeypatch.setattr(presets, 'PRESETS', {**presets.PRESETS, **small})
  evaluate_few_episodes(monkeypatch)
  # The environments that an example registers are forgotten again.
  monkeypatch.setattr(registry, '_registered', dict(registry._registered))


def evaluate_few_episodes(monkeypatch):
  """Makes all evaluations tiny."""
  evaluate = evaluating.evaluate

  @functools.wraps(evaluate)
  def evaluate_few(*args, episodes=_EPISODES, **options):
    return evaluate(*args, episodes=min(episodes, _EPISODES), **options)

  monkeypatch.setattr(evaluating, 'evaluate', evaluate_few)
