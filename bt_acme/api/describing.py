"""Describes a behavior in Markdown, as on the card that comes with it."""

import pathlib
from typing import List, Sequence, Union

from bt_acme import behaviors, environments
from bt_acme.api import evaluating, loading
from bt_acme.config import names
from bt_acme.evaluation import tables

_RANDOM = 1.0  # The epsilon of a policy that acts at random.


def describe(
  behavior: Union[str, pathlib.Path, behaviors.Exported],
  envs: Union[str, Sequence[str]] = (),
  *,
  episodes: int = 100,
  epsilon: float = 0.05,
  seed: int = 0,
) -> str:
  """Describes a behavior in Markdown: its training, and its zero-shot scores.

  Args:
    behavior: a behavior, or anything that `load_behavior` accepts.
    envs: the environments to play, without any learning; none by default.
    episodes: the number of episodes in each environment, for the behavior and
      for a random policy.
    epsilon: the epsilon of the behavior.
    seed: the random seed of the episodes.

  Returns:
    The text.

  Raises:
    ValueError: if the behavior cannot be loaded, or if an environment is
      unknown or has other observations or actions.

  Example:
    ```python
    print(bt_acme.describe('minigrid-explorer', ['MiniGrid-FourRooms-v0']))
    ```
  """
  if not isinstance(behavior, behaviors.Exported):
    behavior = loading.load_behavior(behavior)
  if isinstance(envs, str):
    envs = environments.names_in(envs)
  spec = behavior.agent.spec
  config = behavior.agent.config
  defaults = names.defaults_of(type(config))
  changed = {
    name: value
    for group in names.to_dict(config).values()
    for name, value in group.items()
    if value != defaults[name]
  }
  lines = [
    f'# {behavior.name}',
    '',
    f'- Agent: {type(config).__name__.replace("Config", "")}',
    f'- Trained for {behavior.actor_steps:,} actor steps in:',
    *(f'  - `{name}`' for name in environments.names_in(spec.name)),
    f'- Observations {spec.observation_shape}, {spec.num_actions} actions',
    f'- SHA-256 of `params.npz`: `{behavior.params_sha256}`',
    '- Settings other than the defaults: '
    + ', '.join(f'`{name}={value}`' for name, value in changed.items()),
  ]
  if envs:
    lines += [
      '',
      f'Zero-shot scores: {episodes} episodes each with epsilon {epsilon:g}, '
      f'seed {seed}, without learning. Random policy in brackets.',
      '',
      *_scores(behavior, envs, episodes=episodes, epsilon=epsilon, seed=seed),
    ]
  return '\n'.join(lines) + '\n'


def _scores(
  behavior: behaviors.Exported,
  envs: Sequence[str],
  *,
  episodes: int,
  epsilon: float,
  seed: int,
) -> List[str]:
  """Plays the environments; returns the lines of a table."""
  rows = []
  for env in envs:
    own, random = (
      evaluating.evaluate(
        behavior, env=env, episodes=episodes, seed=seed, epsilon=each
      ).summary()
      for each in (epsilon, _RANDOM)
    )
    rows.append(
      [
        f'`{env}`',
        f'{own["solved"]:.0%} [{random["solved"]:.0%}]',
        f'{own["cells"]:.1f} [{random["cells"]:.1f}]' if 'cells' in own else '',
        f'{own["returns"]:.2f} [{random["returns"]:.2f}]',
      ]
    )
  header = ['environment', 'solved', 'cells per episode', 'return']
  return tables.markdown(header, rows).splitlines()
