"""Declares the runs that each artifact needs.

Artifacts share runs. A run is identified by its settings and is executed only
once. `data/arms.csv` lists the arms, which are the paper's algorithms. An
action repeat (`ez`) has no state and no epsilon, so its arm overrides the
preset's settings for exported behaviors.
"""

from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from experiments import arguments
from experiments.harness import runs
from experiments.paper import artifacts as artifacts_lib
from experiments.paper import data_files, scales


class Arm(NamedTuple):
  """An algorithm of the paper.

  Attributes:
    script: the script that trains the arm.
    settings: the flags that define the algorithm.
    needs: pairs of a flag that takes a pre-trained policy and the arm that
      pre-trains the policy.
  """

  script: str
  settings: Mapping[str, Any]
  needs: tuple[tuple[str, str], ...]


def _arms() -> Iterator[tuple[str, Arm]]:
  rows = data_files.rows('arms.csv')
  arms = {row['arm'] for row in rows}
  for row in rows:
    used = {n: row[n] for n in ('behavior', 'init', 'init_from') if row[n]}
    settings = {n: of for n, of in used.items() if of not in arms}
    for text in row['settings'].split():
      name, _, value = text.partition('=')
      settings[name] = runs.parsed(name, value)
    if row['script']:
      yield (
        row['arm'],
        Arm(
          row['script'],
          settings,
          tuple((n, of) for n, of in used.items() if of in arms),
        ),
      )


ARMS: Mapping[str, Arm] = dict(_arms())


class Part(NamedTuple):
  """Several arms on a suite.

  Attributes:
    stage: `runs.TRANSFER`, or `runs.ZERO_SHOT` for policies that do not learn.
    arms: the ids of the arms.
    suite: the name of a suite of the scale.
    by_budget: whether to use all policy snapshots of the pre-training instead
      of only the final policy.
  """

  stage: str
  arms: tuple[str, ...]
  suite: str
  by_budget: bool = False


_ZERO_SHOT = artifacts_lib.ZERO_SHOT
# The behavior at each budget of pre-training, alone and after transfer. Other
# artifacts show all their arms on all their suites.
_FIG2 = (
  Part(runs.ZERO_SHOT, ('ngu', 'rnd', 'constant'), 'full', by_budget=True),
  Part(runs.ZERO_SHOT, ('ngu',), 'budgets', by_budget=True),
  Part(runs.TRANSFER, ('bt_ngu',), 'budgets', by_budget=True),
)


def _parts(artifact_id: str) -> tuple[Part, ...]:
  """Returns the arms and suites whose runs an artifact shows."""
  artifact = artifacts_lib.find(artifact_id)
  if artifact_id == 'fig2':
    return _FIG2
  arms = {
    runs.TRANSFER: [a for a in artifact.arms if a not in _ZERO_SHOT],
    runs.ZERO_SHOT: [a for a in artifact.arms if a in _ZERO_SHOT],
  }
  return tuple(
    Part(stage, tuple(arms[stage]), suite)
    for suite in artifact.suites
    for stage in arms
  )


class Selection(NamedTuple):
  """A selection of a scale's runs, and settings that override the scale's.

  Attributes:
    seeds: the seeds; empty for the seeds of the scale.
    games: the environments; empty for all.
    arms: the ids of the arms; empty for all.
    settings: flags for all runs whose script has them.
  """

  seeds: tuple[int, ...] = ()
  games: tuple[str, ...] = ()
  arms: tuple[str, ...] = ()
  settings: Mapping[str, Any] = {}


EVERYTHING = Selection()


def declared(
  artifacts: Sequence[str], scale: scales.Scale, choice: Selection = EVERYTHING
) -> list[runs.RunSpec]:
  """Returns the runs of artifacts and their dependencies in execution order.

  Args:
    artifacts: ids of artifacts, such as `table3` and `fig1`.
    scale: the scale.
    choice: the selection of runs.

  Raises:
    ValueError: if an artifact, game, arm or setting is unknown.
  """
  parts = dict.fromkeys(part for a in artifacts for part in _parts(a))
  for arm in choice.arms:
    arguments.known('arms', arm, ARMS)
  for game in choice.games:
    arguments.known('games', game, scale.envs)
  maker = _Maker(scale, choice)
  return runs.ordered(spec for part in parts for spec in maker.make(part))


class _Maker:
  """Declares the runs of one scale."""

  def __init__(self, scale: scales.Scale, choice: Selection):
    self._scale = scale
    self._choice = choice
    self._policies: dict[tuple[str, str, int], runs.RunSpec] = {}

  def make(self, part: Part) -> list[runs.RunSpec]:
    """Returns the runs of a part, without their dependencies."""
    chosen = self._choice
    # 0 stands for the end of pre-training.
    snapshots = (*self._scale.snapshots[:-1], 0) if part.by_budget else (0,)
    return [
      spec
      for seed in chosen.seeds or self._scale.seeds
      for env in self._scale.suites.get(part.suite, ())
      if not chosen.games or env in chosen.games
      for arm in part.arms
      if not chosen.arms or arm in chosen.arms
      for steps in snapshots
      for spec in self._of_arm(part.stage, arm, env, seed, steps)
    ]

  def _of_arm(
    self, stage: str, arm: str, env: str, seed: int, steps: int
  ) -> list[runs.RunSpec]:
    if stage == runs.ZERO_SHOT:
      need = runs.Need('behavior', self._policy(arm, env, seed), steps)
      return [self._evaluation(stage, arm, env, seed, need)]
    needs = tuple(
      runs.Need(flag, self._policy(of, env, seed), steps)
      for flag, of in ARMS[arm].needs
    )
    scale = self._scale
    spec = self._learning(
      (stage, arm, env, seed), scale.transfer_steps, scale.settings, needs
    )
    in_the_run = dict(spec.settings).get('evaluation_episodes', 0)
    if in_the_run >= scale.final_episodes:
      return [spec]
    need = runs.Need('workdir', spec)
    final = self._evaluation(runs.FINAL_EVALUATION, arm, env, seed, need)
    return [spec, final]

  def _policy(self, arm: str, env: str, seed: int) -> runs.RunSpec:
    """Returns the cached pre-training run of an arm for an environment."""
    scale = self._scale
    env = scales.pretraining_env(env)
    key = (arm, env, seed if scale.pretraining == scales.PER_SEED else 0)
    if key not in self._policies:
      snapshots = ','.join(map(str, scale.snapshots[:-1]))
      own = {**scale.pretraining_settings, 'snapshot_steps': snapshots}
      self._policies[key] = self._learning(
        (runs.PRETRAINING, *key),
        scale.pretraining_steps,
        {**scale.settings, **own},
      )
    return self._policies[key]

  def _learning(
    self,
    what: tuple[str, str, str, int],
    budget_steps: int,
    settings: Mapping[str, Any],
    needs: tuple[runs.Need, ...] = (),
  ) -> runs.RunSpec:
    """Returns a training run.

    Args:
      what: stage, arm, environment and seed of the run.
      budget_steps: the actor steps of the run.
      settings: settings, of which those unknown to the script are ignored. The
        settings of the arm take precedence.
      needs: the dependencies of the run.
    """
    arm = ARMS[what[1]]
    known = {
      name: value
      for name, value in {**settings, **self._choice.settings}.items()
      if name == 'preset' or runs.has_setting(arm.script, name)
    }
    flags = tuple({**known, **arm.settings}.items())
    return runs.RunSpec(*what, arm.script, budget_steps, flags, needs)

  def _evaluation(
    self, stage: str, arm: str, env: str, seed: int, need: runs.Need
  ) -> runs.RunSpec:
    """Returns a run that plays the episodes behind a final score."""
    flags = (('episodes', self._scale.final_episodes),)
    return runs.RunSpec(
      stage, arm, env, seed, 'evaluate', settings=flags, needs=(need,)
    )
