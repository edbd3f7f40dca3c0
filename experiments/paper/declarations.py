"""Which runs each artifact needs.

Several artifacts need the same runs, and a run is identified by its settings:
each is executed once, whoever asks for it.
"""

from typing import (
  Any,
  Dict,
  List,
  Mapping,
  NamedTuple,
  Sequence,
  Tuple,
)

from bt_acme.config import names
from experiments.harness import runs
from experiments.paper import arms as arms_lib
from experiments.paper import artifacts as artifacts_lib
from experiments.paper import scales


class Part(NamedTuple):
  """Some arms on a suite.

  Attributes:
    stage: `runs.TRANSFER`, or `runs.ZERO_SHOT` for policies that only act.
    arms: the ids of the arms.
    suite: the name of a suite of the scale.
    by_budget: whether all snapshots of the pre-training are used, and not its
      end alone.
  """

  stage: str
  arms: Tuple[str, ...]
  suite: str
  by_budget: bool = False


_ZERO_SHOT = artifacts_lib.ZERO_SHOT
# The behavior at each budget of pre-training, by itself and transferred. Other
# artifacts show all their arms on all their suites.
_FIG2 = (
  Part(runs.ZERO_SHOT, ('ngu', 'rnd', 'constant'), 'full', by_budget=True),
  Part(runs.ZERO_SHOT, ('ngu',), 'budgets', by_budget=True),
  Part(runs.TRANSFER, ('bt_ngu',), 'budgets', by_budget=True),
)


def _parts(artifact_id: str) -> Tuple[Part, ...]:
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


class Choice(NamedTuple):
  """A part of a scale, and settings over its own.

  Attributes:
    seeds: the seeds; empty for those of the scale.
    games: the environments; empty for all.
    arms: the ids of the arms; empty for all.
    settings: flags of all runs that have them.
  """

  seeds: Tuple[int, ...] = ()
  games: Tuple[str, ...] = ()
  arms: Tuple[str, ...] = ()
  settings: Mapping[str, Any] = {}


EVERYTHING = Choice()


def declared(
  artifacts: Sequence[str], scale: scales.Scale, choice: Choice = EVERYTHING
) -> List[runs.RunSpec]:
  """Returns the runs of artifacts and all that they need, each once, in order.

  Args:
    artifacts: their ids, such as `table3` and `fig1`.
    scale: the scale.
    choice: what part of it.

  Raises:
    ValueError: for an unknown artifact, game, arm or setting.
  """
  parts = dict.fromkeys(part for a in artifacts for part in _parts(a))
  for arm in choice.arms:
    arms_lib.get(arm)
  for game in choice.games:
    if game not in scale.envs:
      advice = names.suggest(game, scale.envs)
      raise ValueError(f'games={game!r} is not in scale={scale.name}: {advice}')
  maker = _Maker(scale, choice)
  return runs.ordered(spec for part in parts for spec in maker.make(part))


class _Maker:
  """Makes the runs of one scale."""

  def __init__(self, scale: scales.Scale, choice: Choice):
    self._scale = scale
    self._choice = choice
    self._policies: Dict[Tuple[str, str, int], runs.RunSpec] = {}

  def make(self, part: Part) -> List[runs.RunSpec]:
    """Returns the runs of a part, without what they need."""
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
  ) -> List[runs.RunSpec]:
    if stage == runs.ZERO_SHOT:
      return [self._zero_shot(arm, env, seed, steps)]
    spec = self._transfer(arm, env, seed, steps)
    return [spec, *self._final_evaluation(spec)]

  def _policy(self, arm: str, env: str, seed: int) -> runs.RunSpec:
    """Returns the pre-training of an arm for an environment, made once."""
    scale = self._scale
    env = scales.pretraining_env(env)
    key = (arm, env, seed if scale.pretraining == scales.PER_SEED else 0)
    if key not in self._policies:
      self._policies[key] = self._pretraining(*key)
    return self._policies[key]

  def _pretraining(self, arm: str, env: str, seed: int) -> runs.RunSpec:
    scale, definition = self._scale, arms_lib.get(arm)
    snapshots = ','.join(map(str, scale.snapshots[:-1]))
    settings = {**scale.settings, **scale.pretraining_settings}
    return runs.RunSpec(
      runs.PRETRAINING,
      arm,
      env,
      seed,
      definition.script,
      scale.pretraining_steps,
      self._settings(definition, {**settings, 'snapshot_steps': snapshots}),
    )

  def _transfer(
    self, arm: str, env: str, seed: int, steps: int
  ) -> runs.RunSpec:
    definition = arms_lib.get(arm)
    return runs.RunSpec(
      runs.TRANSFER,
      arm,
      env,
      seed,
      definition.script,
      self._scale.transfer_steps,
      self._settings(definition, self._scale.settings),
      tuple(
        runs.Need(flag, self._policy(of, env, seed), steps)
        for flag, of in definition.needs
      ),
    )

  def _zero_shot(
    self, arm: str, env: str, seed: int, steps: int
  ) -> runs.RunSpec:
    return runs.RunSpec(
      runs.ZERO_SHOT,
      arm,
      env,
      seed,
      'evaluate',
      settings=self._episodes(),
      needs=(runs.Need('behavior', self._policy(arm, env, seed), steps),),
    )

  def _final_evaluation(self, spec: runs.RunSpec) -> List[runs.RunSpec]:
    """Returns what measures a run's end, unless the run itself does so."""
    in_the_run = dict(spec.settings).get('evaluation_episodes', 0)
    if in_the_run >= self._scale.final_episodes:
      return []
    return [
      runs.RunSpec(
        runs.FINAL_EVALUATION,
        spec.arm,
        spec.env,
        spec.seed,
        'evaluate',
        settings=self._episodes(),
        needs=(runs.Need('workdir', spec),),
      )
    ]

  def _episodes(self) -> runs.Settings:
    return (('episodes', self._scale.final_episodes),)

  def _settings(
    self, arm: arms_lib.Arm, settings: Mapping[str, Any]
  ) -> runs.Settings:
    """Returns the settings that a script has; the arm's own always win."""
    values = {**settings, **self._choice.settings}
    known = {
      name: value
      for name, value in values.items()
      if name == 'preset' or runs.has_setting(arm.script, name)
    }
    return tuple({**known, **arm.settings}.items())
