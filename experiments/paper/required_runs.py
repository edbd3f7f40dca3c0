"""Declares the runs that each artifact needs.

Artifacts share runs. A run is identified by its settings and is executed only
once.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bt_acme.config import names
from experiments import command_line
from experiments.harness import runs
from experiments.paper import artifacts as artifacts_lib
from experiments.paper import scales


class Request(NamedTuple):
  """Artifacts, and a selection of their runs.

  Attributes:
    artifacts: ids of artifacts, such as `table3` and `fig1`.
    seeds: the seeds; empty for the seeds of the scale.
    games: the environments; empty for all.
    arms: the ids of the arms; empty for all.
  """

  artifacts: tuple[str, ...]
  seeds: tuple[int, ...] = ()
  games: tuple[str, ...] = ()
  arms: tuple[str, ...] = ()


def declared(request: Request, scale: scales.Scale) -> list[runs.RunSpec]:
  """Returns the runs of a request and their dependencies in execution order.

  Raises:
    ValueError: if a game, arm or setting is unknown.
  """
  for arm in request.arms:
    command_line.known('arms', arm, artifacts_lib.ARMS)
  for game in request.games:
    command_line.known('games', game, scale.envs)
  # Runs share pre-training runs, whose ids take long to compute.
  learn = functools.cache(functools.partial(_learning, scale))
  cases = dict.fromkeys(
    case
    for artifact in request.artifacts
    for case in _cases(artifacts_lib.ARTIFACTS[artifact], scale, request)
  )
  return runs.ordered(
    spec for case in cases for spec in _runs(scale, learn, *case)
  )


# A stage, arm, environment and seed.
_Case = tuple[str, str, str, int]


def _cases(
  artifact: artifacts_lib.Artifact, scale: scales.Scale, request: Request
) -> Iterator[tuple[_Case, int]]:
  """Yields the runs that an artifact shows, each with a number of actor steps.

  The actor steps are those of the policy snapshot of pre-training that the run
  uses; 0 stands for the final policy.
  """
  snapshots = (*scale.snapshots[:-1], 0) if artifact.by_budget else (0,)
  for suite in artifact.suites:
    for seed, env, arm, steps in itertools.product(
      request.seeds or scale.seeds,
      scale.suites.get(suite, ()),
      artifact.arms_of(suite),
      snapshots,
    ):
      if env in (request.games or [env]) and arm in (request.arms or [arm]):
        yield (artifacts_lib.stage_of(arm), arm, env, seed), steps


def _runs(
  scale: scales.Scale,
  learn: Callable[..., runs.RunSpec],
  case: _Case,
  steps: int,
) -> Iterator[runs.RunSpec]:
  """Yields a run and its final evaluation, without their dependencies.

  Args:
    scale: the scale of the run.
    learn: returns a training run of the scale, as `_learning` does.
    case: the run.
    steps: the actor steps of the policy snapshots that the run uses.
  """
  stage, arm, env, seed = case
  policies = artifacts_lib.ARMS[arm].policies
  if stage == runs.ZERO_SHOT:
    policies = {'behavior': arm}
  own_seed = seed if scale.pretraining == scales.PER_SEED else 0
  place = scales.pretraining_env(env), own_seed
  needs = tuple(
    runs.Need(flag, learn((runs.PRETRAINING, of, *place)), steps)
    for flag, of in policies.items()
  )
  # The episodes behind a final score.
  episodes = (('episodes', scale.final_episodes),)
  if stage == runs.ZERO_SHOT:
    yield runs.RunSpec(*case, 'evaluate', settings=episodes, needs=needs)
    return
  spec = learn(case, needs)
  yield spec
  given = {'num_evaluators': 1, 'evaluation_episodes': 0, **dict(spec.settings)}
  played = given['evaluation_episodes'] if given['num_evaluators'] else 0
  if played < scale.final_episodes:
    yield runs.RunSpec(
      *(runs.FINAL_EVALUATION, arm, env, seed, 'evaluate'),
      settings=episodes,
      needs=(runs.Need('workdir', spec),),
    )


def _learning(
  scale: scales.Scale, case: _Case, needs: tuple[runs.Need, ...] = ()
) -> runs.RunSpec:
  """Returns a training run.

  Settings unknown to its script are ignored, and those of its arm take
  precedence.
  """
  arm = artifacts_lib.ARMS[case[1]]
  budget_steps, given = scale.transfer_steps, dict(scale.settings)
  if case[0] == runs.PRETRAINING:
    budget_steps = scale.pretraining_steps
    given |= scale.pretraining_settings
    given['snapshot_steps'] = ','.join(map(str, scale.snapshots[:-1]))
  known = {'preset', *names.defaults_of(runs.SETTINGS[arm.script])}
  given = {k: v for k, v in {**given, **scale.overrides}.items() if k in known}
  flags = tuple({**given, **arm.settings}.items())
  return runs.RunSpec(*case, arm.script, budget_steps, flags, needs)
