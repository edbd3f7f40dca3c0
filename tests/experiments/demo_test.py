"""Tests of the demo with tiny budgets."""

import dataclasses
import json

import numpy as np
import pytest
from PIL import Image, ImageSequence

from bt_acme.core import types
from bt_acme.evaluation import control_view
from experiments import launching
from experiments.demo import __main__ as demo
from experiments.demo import episode_video, progress, report
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
    # Flights are frequent but short, so that the agent also acts.
    'min_flight_probability': 0.2,
    'max_flight_probability': 0.3,
    'flight_exponent': 3.0,
  },
)


@pytest.fixture(name='finished', scope='module')
def run_demo(tmp_path_factory):
  folder = tmp_path_factory.mktemp('demo')
  assert demo.run(_PLAN, folder, launch=_launch_in_one_process) == 0
  return folder


def _launch_in_one_process(script, flags):
  """Executes the launch script in a single process, which takes less time."""
  return launching.launch(
    script, [*flags, '--lp_launch_type=in_process', '--num_actors=1']
  )


def _times(folder):
  return {p: p.stat().st_mtime for p in folder.glob('results/*.json')}


def test_a_finished_demo_is_shown_again_without_new_runs(finished, capsys):
  before = _times(finished)
  assert len(before) == len(_PLAN.jobs) + 1 == 6
  assert demo.run(_PLAN, finished, launch=_launch_in_one_process) == 0
  assert before == _times(finished)
  output = capsys.readouterr().out
  assert 'Reused the results of 5 of 5 runs.' in output
  for label in (
    *('random', 'pi_p seed 3'),
    *('R2D2 seed 3', 'fine-tuning seed 3', 'R2D2 + BT seed 3'),
  ):
    assert f'\n{label} ' in output
  assert 'R2D2 + BT at least' in output
  assert 'Wall time:' in output


def test_the_figures_exist(finished):
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


def test_a_result_is_reused_only_for_the_same_run(finished):
  job = _PLAN.job('R2D2', 3)
  assert len(job.result(finished)['episodes']['actor_steps']) >= 16
  for changes in ({'task_steps': 1_800}, {'settings': {'batch_size': 4}}):
    other = dataclasses.replace(_PLAN, **changes).job('R2D2', 3)
    assert not other.is_done(finished)
  (path,) = finished.glob(f'results/{job.id}.json')
  text = path.read_text()
  try:
    path.write_text(text[:-20])
    assert not job.is_done(finished)
  finally:
    path.write_text(text)
  assert job.is_done(finished)


def test_a_failed_run_is_reported(finished, capsys):
  plan = dataclasses.replace(_PLAN, task_steps=100, episodes=-1)
  assert demo.complete([plan.job('R2D2', 3)], finished, processes=1) == 1
  lines = capsys.readouterr().out.splitlines()
  (line,) = [line for line in lines if 'has failed 3 times' in line]
  assert 'R2D2-3' in line and 'Error: ' in line


def test_the_launched_run_gets_budget_settings_and_seed(tmp_path):
  plan = plan_lib.Plan(seeds=(7, 1), settings={'min_flight_probability': 0.1})
  flags = plan.flags(tmp_path)
  assert '--max_actor_steps=40000' in flags
  assert '--seed=7' in flags
  behavior = plan.job('NGU', 7).behavior(tmp_path)
  assert f'--behavior={behavior}' in flags
  assert '--min_flight_probability=0.1' in flags
  assert not any('lp_launch_type' in flag for flag in flags)


def test_every_seed_has_its_own_behavior():
  plan = plan_lib.Plan(seeds=(7, 1), finetuning=True)
  jobs = [*plan.jobs, plan.launched]
  assert len({job.id for job in jobs}) == len(jobs) == 2 * 5 + 1
  for job in jobs:
    if job.run.algorithm in ('R2D2', 'NGU'):
      assert not job.needed
    else:
      assert job.needed == [plan.job('NGU', job.seed)]
      assert job.needed[0] in plan.jobs[:2]


def test_a_result_of_another_behavior_is_not_reused(finished):
  job = _PLAN.job('fine-tuning', 3)
  card = job.needed[0].behavior(finished) / 'behavior.json'
  text = card.read_text()
  checksum = json.loads(text)['params_sha256']
  assert job.is_done(finished)
  try:
    card.write_text(text.replace(checksum, '0' * len(checksum)))
    assert not job.is_done(finished)
    card.unlink()
    assert not _PLAN.job('NGU', 3).is_done(finished)
  finally:
    card.write_text(text)


def test_the_table_has_a_row_for_each_seed_of_each_policy():
  plan = plan_lib.Plan(seeds=(4, 7))
  jobs = [*plan.jobs, plan.launched]
  results = {
    job: {'row': {'solved': number / 100, 'return': 0.0, 'cells': 3.0}}
    for number, job in enumerate(jobs)
  }
  _, _, *lines = report.table(plan, results).splitlines()
  assert [line.split('%')[0].split() for line in lines] == [
    [*plan_lib.label(job).split(), str(jobs.index(job))]
    if job != plan.maps
    else ['random', str(jobs.index(job))]
    for job in (
      plan.maps,
      *(
        plan.job(algorithm, seed)
        for algorithm in ('pi_p', 'R2D2', 'R2D2 + BT')
        for seed in (4, 7)
      ),
    )
  ]
  assert report.conclusion(plan, results) == (
    'pi_p solves at most 6% of the episodes, R2D2 at most 4% and R2D2 + BT at '
    'least 2%, with each of 2 seeds.'
  )


def test_the_line_shows_the_remaining_time():
  plan = plan_lib.Plan(seeds=(0,), pretraining_steps=500, task_steps=1_000)
  pretraining, r2d2, behavior, maps = plan.jobs
  line = progress.ProgressLine(plan.jobs)
  line.update(pretraining, 0, 0.0)
  line.update(pretraining, 100, float('nan'))
  assert line.text(0.1) == '0 of 4 runs done | NGU seed 0 20%'
  line.end(pretraining, 'explored')
  for job in (behavior, maps):
    line.update(job, 0, 0.0)
  line.update(r2d2, 400, 0.25)
  assert line.text(8.0) == (
    '1 of 4 runs done, 0:00:06 left | pi_p seed 0 | random and heat maps | '
    'R2D2 seed 0 40%, return 0.25'
  )


def test_the_video_shows_the_solved_episode_with_the_most_controllers():
  own, extra, flight = types.OWN, types.EXTRA, types.FLIGHT
  episodes = [
    episode_video.Episode([0] * 3, [own, extra, flight], 0.0),
    episode_video.Episode([0] * 2, [own, own], 0.9),
    episode_video.Episode([0] * 4, [own, own, own, extra], 0.5),
    episode_video.Episode([0] * 3, [flight, own, own], 0.1),
  ]
  assert episode_video.best(episodes) == episodes[3]
