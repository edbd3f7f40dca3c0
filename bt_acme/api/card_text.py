"""Describes a behavior on a card, in Markdown and HTML."""

import pathlib
import re
from collections.abc import Sequence
from typing import Any

from bt_acme import assembly, behaviors, environments
from bt_acme.api import evaluating, loading
from bt_acme.behaviors import cards
from bt_acme.config import checks, names
from bt_acme.config import run as run_config
from bt_acme.evaluation import episode_records, logs, plots, tables
from bt_acme.runtime import workdir

_RANDOM = 1.0  # The epsilon of a random policy.
_WINDOW = 100  # Episodes in each mean of a learning curve.
_FILM_FRAMES = 300

_NUM_ENVIRONMENTS = 16  # The default of `pretrain` and `train`.
Names = str | Sequence[str]


def describe(
  behavior: str | pathlib.Path | behaviors.Exported,
  envs: Names = (),
  *,
  videos: Names = (),
  episodes: int = 100,
  epsilon: float = 0.05,
  seed: int = 0,
  notes: str = '',
) -> cards.Card:
  """Describes a behavior: its training, its scores, and videos.

  If the behavior is in the workdir of its run, the card has a learning curve,
  and the command has the seed and the number of environments.

  Args:
    behavior: a behavior, or anything that `load_behavior` accepts.
    envs: the environments to play, without any learning; none by default.
    videos: the environments in which to record a video of one episode.
    episodes: the number of episodes in each environment, for the behavior and
      for a random policy.
    epsilon: the epsilon of the behavior.
    seed: the random seed of the episodes.
    notes: Markdown at the end of the card, such as known limits.

  Returns:
    The card.

  Raises:
    ValueError: if the behavior cannot be loaded, if an environment is unknown
      or has other observations or actions, or if another argument is invalid.

  Example:
    ```python
    env = 'MiniGrid-Empty-5x5-v0'
    card = bt_acme.describe('minigrid-explorer', env, episodes=10)
    print(card)
    card.save('runs/card')
    ```
  """
  for name, value, declared in (
    ('notes', notes, checks.setting('')),
    ('episodes', episodes, checks.setting(100, above=0)),
    ('epsilon', epsilon, checks.setting(0.05, minimum=0, maximum=1)),
  ):
    checks.check_value(name, value, declared)
  if not isinstance(behavior, behaviors.Exported):
    behavior = loading.load_behavior(behavior)
  envs, videos = (_single_names(given) for given in (envs, videos))
  for env in (*envs, *videos):
    assembly.moved(behavior.agent, env)  # Before anything is played.
  pictures: dict[str, bytes] = {}
  parts = [f'# {behavior.name}', _facts(behavior)]
  for env in videos:
    name = f'{re.sub("[^0-9a-z-]+", "-", env.lower()).strip("-")}.gif'
    if name == '.gif' or name in pictures:
      name = f'{len(pictures)}-film.gif'
    pictures[name] = episode_records.film(
      assembly.moved(behavior.agent, env),
      behavior.learned,
      suffix='.gif',
      epsilon=epsilon,
      seed=seed,
      max_frames=_FILM_FRAMES,
      scale=1,
    )
    parts += [
      f'An episode in `{env}`:',
      f'![An episode in {re.sub("[][]", "", env)}]({name})',
    ]
  if envs:
    parts += [
      '## Scores',
      f'{episodes} episodes in each environment with epsilon {epsilon:g} and '
      f'seed {seed}, without learning. In brackets: a random policy.',
      _scores(behavior, envs, epsilon, episodes=episodes, seed=seed),
    ]
  curve = _curve(behavior)
  if curve:
    pictures['curve.png'] = curve
    parts += ['## Training', '![Learning curve](curve.png)']
  parts += ['## How to make it again', _command(behavior)]
  if notes:
    parts.append(notes.strip())
  return cards.Card('\n\n'.join(parts) + '\n', pictures)


def learned_with(agent: assembly.Agent) -> str:
  """Returns Markdown with the behaviors that an agent transfers."""
  listed = ', '.join(f'`{behavior.name}`' for behavior in agent.behaviors)
  return (
    f'## Behaviors\n\nThis policy learned with the behaviors {listed}, which '
    'the command above does not contain. It acts without them.'
  )


def _single_names(given: Names) -> list[str]:
  listed = [given] if isinstance(given, str) else given or ()
  return [
    name for each in listed if each for name in environments.names_in(each)
  ]


def _facts(behavior: behaviors.Exported) -> str:
  spec = behavior.agent.spec
  envs = ', '.join(f'`{name}`' for name in environments.names_in(spec.name))
  return '\n'.join(
    [
      f'- Agent: {type(behavior.agent.config).__name__.removesuffix("Config")}',
      f'- Trained for {behavior.actor_steps:,} actor steps in {envs}',
      f'- Observations {spec.observation_shape}, {spec.num_actions} actions',
      f'- SHA-256 of `params.npz`: `{behavior.params_sha256}`',
    ]
  )


def _command(behavior: behaviors.Exported) -> str:
  """Returns Python code that trains such a behavior.

  All settings that differ from the defaults are given, so that presets, which
  may change, do not matter.
  """
  config, spec = behavior.agent.config, behavior.agent.spec
  defaults = names.defaults_of(type(config))
  num_envs = len(environments.names_in(spec.name))
  at_least = {
    'evaluation_episodes': run_config.RunConfig.evaluation_episodes,
    'num_environments': _NUM_ENVIRONMENTS,
  }
  settings = {
    'max_actor_steps': behavior.actor_steps,
    'preset': 'paper',
    'num_stacked': spec.num_stacked,
    **{name: num_envs for name, n in at_least.items() if n < num_envs},
    **_of_run(behavior),
    **{k: v for k, v in names.flat(config).items() if v != defaults[k]},
  }
  settings.pop('codec', None)  # Of launched runs only; training is the same.
  function = 'pretrain' if behavior.agent.intrinsic else 'train'
  lines = [
    '```python',
    f'run = bt_acme.{function}(',
    f'  {spec.name!r},',
    *(f'  {name}={value!r},' for name, value in settings.items()),
    ')',
    f'run.export({behavior.name!r})',
    '```',
  ]
  if function == 'train':
    lines.append(
      '\nIf it learned with behaviors, use `bt_acme.transfer` with them and '
      'their settings. Pass initial weights as `init_from`.'
    )
  return '\n'.join(lines)


def _of_run(behavior: behaviors.Exported) -> dict[str, int]:
  """Returns the recorded settings of the run; none outside of its workdir."""
  folder = str(pathlib.Path(behavior.folder).parent)
  try:
    run = workdir.run_of(folder, workdir.read_identity(folder))
  except (ValueError, TypeError):  # Another program's config.json, for example.
    return {}
  return {'seed': run.seed, 'num_environments': run.num_environments}


def _curve(behavior: behaviors.Exported) -> bytes:
  """Returns a PNG of the returns in training; empty without any in the log.

  The run may have continued after it exported the behavior.
  """
  folder = str(pathlib.Path(behavior.folder).parent)
  columns = logs.read_columns(folder, 'actor')
  if not columns or columns['actor_steps'][0] > behavior.actor_steps:
    return b''
  until = columns['actor_steps'] <= behavior.actor_steps
  columns = {name: column[until] for name, column in columns.items()}
  value = 'intrinsic_return' if behavior.agent.intrinsic else 'episode_return'
  return plots.learning_curves(
    '',
    {behavior.name: [plots.smoothed_curve(columns, value, window=_WINDOW)]},
    title='Training',
    ylabel=f'{value.replace("_", " ")}, mean of {_WINDOW} episodes',
  )._repr_png_()


def _scores(
  behavior: behaviors.Exported,
  envs: Sequence[str],
  epsilon: float,
  **options: Any,
) -> str:
  """Plays the environments; returns a table."""
  rows: list[list[str]] = []
  for env in envs:
    own, random = (
      evaluating.evaluate(behavior, env=env, epsilon=e, **options).summary()
      for e in (epsilon, _RANDOM)
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
  return tables.markdown(header, rows)
