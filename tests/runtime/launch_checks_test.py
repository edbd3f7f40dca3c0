"""Checks of a run before it starts."""

import pytest

import bt_acme.config as config_lib
from bt_acme.config import run as run_config
from bt_acme.runtime import launch_checks


@pytest.mark.parametrize(
  'steps, environments, period, fillable',
  # In the second case, the last period of an environment is incomplete.
  [(95, 4, 10, 9), (39, 10, 3, 10)],
)
def test_a_budget_must_fill_the_replay_to_its_minimum(
  steps, environments, period, fillable
):
  run = run_config.RunConfig(
    max_actor_steps=steps, num_actors=1, envs_per_actor=environments
  )
  for least in (fillable, fillable + 1):
    replay = config_lib.ReplayConfig(
      trace_length=period, sequence_period=period, min_replay_size=least
    )
    if least == fillable:
      launch_checks._check_budget(run, replay)
      continue
    with pytest.raises(ValueError, match=f'produces only about {fillable} '):
      launch_checks._check_budget(run, replay)
