"""The demo with tiny budgets, and what it says of its runs."""

import dataclasses

import jax
import numpy as np
import pytest
from PIL import Image, ImageSequence

from bt_acme import assembly, behaviors, environments
from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.core.intrinsic import host as host_reward
from bt_acme.evaluation import control_view
from experiments.demo import __main__ as demo
from experiments.demo import execution, film, pretraining, progress, runs
from experiments.demo import plan as plan_lib

_PLAN = plan_lib.Plan(
  seeds=(3,),
  finetuning=True,
  pretraining_steps=400,
  task_steps=1_700,
  episodes=3,
  map_episodes=3,
  settings={
    'torso_size': 8,
    'lstm_size': 8,
    'head_size': 8,
    'memory_capacity': 50,
    'samples_per_insert': 1.0,
    'min_replay_size': 4,
    # Flights come often, and are short enough for the agent to act as well.
    'min_flight_probability': 0.2,
    'max_flight_probability': 0.3,
    'flight_exponent': 3.0,
  },
)


def _export_untrained(plan, folder):
  """Stands for the launched program."""
  agent = assembly.Agent(
    plan.configuration(config_lib.NGUConfig),
    assembly.spec_of(environments.make(plan_lib.WORLD, seed=0), plan_lib.WORLD),
  )
  key = jax.random.key(0)
  reward = host_reward.HostReward(agent.intrinsic.config, 1)
  behaviors.export(
    str(plan.pretraining_folder(folder) / 'behavior'),
    agent=agent,
    variables=assembly.Variables(
      agent.network.init(key), agent.intrinsic.networks.init(key)
    ),
    statistics=reward.statistics().merged(),
    actor_steps=0,
  )
  return 0


@pytest.fixture(name='finished', scope='module')
def run_demo(tmp_path_factory):
  folder = tmp_path_factory.mktemp('demo')
  assert demo.run(_PLAN, folder, pretrain=_export_untrained) == 0
  return folder


def test_a_demo_that_has_ended_is_shown_again_without_being_run(
  finished, capsys
):
  before = {path: path.stat().st_mtime for path in finished.glob('*.json')}
  assert len(before) == len(_PLAN.jobs) == 4
  assert demo.run(_PLAN, finished, pretrain=_export_untrained) == 0
  assert before == {p: p.stat().st_mtime for p in finished.glob('*.json')}
  output = capsys.readouterr().out
  assert '4 of 4 runs were there from before.' in output
  for label in (
    *('random', 'pi_p zero-shot'),
    *('R2D2 seed 3', 'fine-tuning seed 3', 'R2D2 + BT seed 3'),
  ):
    assert f'\n{label} ' in output
  assert 'R2D2 + BT at least' in output
  assert 'Wall time:' in output


def test_the_pictures_are_there(finished):
  for name in ('curves.png', 'visits.png'):
    assert (finished / name).read_bytes().startswith(b'\x89PNG')
  path = finished / 'control.gif'
  assert path.stat().st_size < 1_000_000
  with Image.open(path) as image:
    assert image.info['loop'] == 0
    corners = [
      np.array(frame.convert('RGB'))[1, 1].astype(int)
      for frame in ImageSequence.Iterator(image)
    ]
  seen = {
    controller.name
    for controller in control_view.CONTROLLERS.values()
    for corner in corners
    if np.abs(corner - controller.color).max() <= 8
  }
  assert {'agent', 'flight'} <= seen


def test_a_result_is_kept_for_the_same_run_only(finished):
  job = _PLAN.jobs[-1]
  result = execution.read(job, _PLAN, finished)
  assert len(result['episodes']['actor_steps']) >= 16
  for changes in ({'task_steps': 1_800}, {'settings': {'batch_size': 4}}):
    other = dataclasses.replace(_PLAN, **changes)
    assert execution.read(job, other, finished) is None
  path = finished / f'{job.name}.json'
  text = path.read_text()
  try:
    path.write_text(text[:-20])
    assert execution.read(job, _PLAN, finished) is None
  finally:
    path.write_text(text)


def test_a_run_that_fails_is_named(finished):
  plan = dataclasses.replace(_PLAN, episodes=0)
  with pytest.raises(
    RuntimeError, match='random and pi_p failed.\n.*Traceback'
  ):
    runs.complete(plan, finished, processes=1)


def test_the_launched_program_gets_budget_settings_and_seed(tmp_path):
  plan = plan_lib.Plan(seeds=(7, 1), settings={'batch_size': 8})
  flags = pretraining._flags(plan, tmp_path)
  assert '--max_actor_steps=40000' in flags
  assert '--seed=7' in flags
  assert f'--workdir={tmp_path}/ngu_7' in flags
  assert '--batch_size=8' in flags
  assert not any('flight' in flag for flag in flags)


def test_the_line_tells_how_long_the_runs_will_take():
  policies, *jobs = plan_lib.Plan(seeds=(0,)).jobs
  line = progress.Line([policies, *jobs], 1_000)
  line.update(policies, 0, 0.0)
  line.update(jobs[0], 100, 0.0)
  assert line.text(0.1) == (
    '0 of 3 runs done | random and pi_p | R2D2 + BT seed 0 10%, solves 0%'
  )
  line.end(policies, 'evaluated')
  line.update(jobs[0], 600, 0.25)
  assert line.text(10.0) == (
    '1 of 3 runs done, 0:00:28 left | R2D2 + BT seed 0 60%, solves 25%'
  )
  line.end(jobs[0], 'solves 100%')
  line.update(jobs[1], 600, 0)
  assert line.text(30.0) == (
    '2 of 3 runs done, 0:00:08 left | R2D2 seed 0 60%, solves 0%'
  )


def test_the_film_is_the_solved_episode_with_most_controllers():
  own, extra, flight = types.OWN, types.EXTRA, types.FLIGHT
  films = [
    film.Film([0] * 3, [own, extra, flight], 0.0),
    film.Film([0] * 2, [own, own], 0.9),
    film.Film([0] * 4, [own, own, own, extra], 0.5),
    film.Film([0] * 3, [flight, own, own], 0.1),
  ]
  assert film.best(films) == films[3]
