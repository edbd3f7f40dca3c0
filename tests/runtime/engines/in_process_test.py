"""A run in one process: the same agent, and the same every time."""

import dataclasses

import jax
import numpy as np
import pytest

from bt_acme import environments
from bt_acme.core import data_parallel
from bt_acme.environments import vector
from bt_acme.runtime.engines import in_process
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')

N, STEPS = 3, 240


@pytest.fixture(name='run')
def make_run(monkeypatch):
  monkeypatch.setattr(
    environments,
    'make_vector',
    lambda name, num_environments, *, seed, num_stacked: (
      vector.VectorEnvironment(
        [
          fakes.MarkedEnvironment(environments.seed_of(seed, i) % 200)
          for i in range(num_environments)
        ]
      )
    ),
  )

  def run(kind, seed=0, **settings):
    return in_process.run(
      fakes.make_agent(kind),
      num_environments=N,
      max_actor_steps=STEPS,
      seed=seed,
      **settings,
    )

  return run


@pytest.mark.parametrize('kind', ['r2d2', 'ngu', 'bt'])
def test_a_run(run, kind):
  seen = []
  result = run(kind, on_episode=seen.append)
  assert STEPS <= result.actor_steps < STEPS + N
  assert seen == result.episodes and len(seen) > 5
  steps = [row['actor_steps'] for row in seen]
  assert steps == sorted(steps) and steps[-1] <= result.actor_steps
  assert result.learner[0]['learner_steps'] == 10
  assert all(np.isfinite(list(row.values())).all() for row in result.learner)
  for row in result.learner:
    assert 0 <= row['first_visit_share'] <= 1
    assert row['priority_over_uniform'] > 0
    assert row['target_copies'] == 0  # The period is longer than the run.
  assert result.learner[-1]['first_visit_share'] < 1
  if kind == 'ngu':
    # One set of statistics, of each step that was taken.
    assert result.statistics.error_count == result.actor_steps
    assert any(row['intrinsic_return'] > 0 for row in seen)
  else:
    assert result.statistics is None
    assert not result.variables.intrinsic
  assert any(row['flights'] for row in seen) == (kind == 'bt')


def test_the_seed_decides(run):
  first, again, other = run('r2d2'), run('r2d2'), run('r2d2', seed=1)
  assert first.episodes == again.episodes != other.episodes
  assert first.learner == again.learner
  jax.tree.map(np.testing.assert_array_equal, first.variables, again.variables)


def test_the_learner_compiles_once(run, monkeypatch):
  steps = []
  jit_step = data_parallel.jit_step

  def keep(*args):
    steps.append(jit_step(*args))
    return steps[-1]

  monkeypatch.setattr(data_parallel, 'jit_step', keep)
  run('r2d2')
  (step,) = steps
  assert step._cache_size() == 1


def test_initial_parameters_are_where_it_starts(run):
  agent = fakes.make_agent('r2d2')
  params = fakes.variables_of(agent, 9).agent
  frozen = dataclasses.replace(
    agent,
    config=dataclasses.replace(
      agent.config,
      learner=dataclasses.replace(agent.config.learner, learning_rate=1e-12),
    ),
  )
  result = in_process.run(
    frozen,
    num_environments=1,
    max_actor_steps=40,
    seed=0,
    initial_params=params,
  )
  jax.tree.map(
    lambda x, y: np.testing.assert_allclose(x, y, atol=1e-9),
    result.variables.agent,
    params,
  )
