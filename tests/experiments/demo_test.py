"""Tests of the demo with tiny budgets."""

import dataclasses
import json

import numpy as np
import pytest
from PIL import Image, ImageSequence

import bt_acme
from bt_acme.config import names
from bt_acme.core import types as core_types
from bt_acme.evaluation import control_view
from experiments.demo import __main__ as demo
from experiments.demo import plan as plan_lib
from experiments.demo import report
from experiments.harness import records, small_runs
from launch import run_bt
from tests.experiments.harness import fakes

# Its episodes are short, and random actions hardly ever solve it.
_TASK = 'MiniGrid-MultiRoom-N2-S4-v0:fixed=1'
_TINY = {
  **{**fakes.TINY, 'trace_length': 8},
  **dict.fromkeys(['sequence_period', 'batch_size'], 4),
}
# Flights are frequent but short, so that the agent also acts.
_FLIGHTS = {
  **{'min_flight_probability': 0.2, 'max_flight_probability': 0.3},
  'flight_exponent': 3.0,
}
_NGU = small_runs.SmallRun(
  *('NGU', 'ngu', 'MiniGrid-FourRooms-v0:no_goal', 400),
  settings={**_TINY, 'memory_capacity': 50},
  episodes=0,
)


def _tiny(arm, steps):
  """Returns an arm with a tiny network and budget, and other behaviors."""
  settings = {**arm.settings, **_TINY, **(_FLIGHTS if arm.kind == 'bt' else {})}
  behavior, steps = arm.behavior, arm.actor_steps and steps
  if isinstance(behavior, small_runs.SmallRun):
    behavior = _NGU
  if isinstance(behavior, tuple):
    behavior = behavior[0], _NGU
    settings['behavior_roles'] = 'both,fly'
  changes = {'settings': settings, 'behavior': behavior, 'episodes': 8}
  return dataclasses.replace(arm, actor_steps=steps, **changes)


_PLAN, _BANK = (
  plan_lib.Plan(
    (_TASK,), tuple(_tiny(arm, steps) for arm in plan_lib.read(name).arms), (3,)
  )
  for name, steps in (('full', 1_000), ('bank', 800))
)


def _in(folder, plan=_PLAN):
  return dataclasses.replace(plan, folder=folder)


@pytest.fixture(name='here', scope='module')
def execute_in_this_process(shared_functions):
  """Executes all runs in this process, which compiles each function once."""
  del shared_functions
  with fakes.worker_in_this_process():
    yield


@pytest.fixture(name='finished', scope='module')
def run_demo(tmp_path_factory, here):
  folder = tmp_path_factory.mktemp('demo')
  assert demo.run(_in(folder), launch=_launch_in_this_process) == 0
  return folder


def test_shipped_behaviors_are_shown_and_used_as_a_bank(tmp_path, here, capsys):
  # This demo launches nothing.
  assert demo.run(_in(tmp_path, _BANK), launch=None) == 0
  with Image.open(tmp_path / 'behavior.gif') as image:
    assert image.n_frames > 8
  for name in ('curves', 'priorities'):
    assert (tmp_path / f'{name}_MultiRoom-N2-S4-fixed=1.png').exists()
  output = capsys.readouterr().out
  shown = output.index('behavior.gif')
  assert shown < output.index('== 2 of 3') < output.index('control.gif')
  columns = 'task random pi_p R2D2 + BT bank, uniform bank, learned'.split()
  assert columns in [line.split() for line in output.splitlines()]
  assert 'with learned priorities.' in output and 'NGU explores' not in output
  learned, *others = (
    _BANK.run(name, _TASK, 3) for name in ('bank, learned', 'random', 'pi_p')
  )
  random, solved = (x.result(tmp_path)['row']['solved'] for x in others)
  assert random < 0.5 < solved
  path = str(_NGU.with_seed(3).exported(tmp_path))
  assert learned.transferred(tmp_path) == ['minigrid-explorer', path]
  episodes = learned.result(tmp_path)['episodes']
  np.testing.assert_allclose(
    np.sum([episodes[f'flight_priority_{k}'] for k in range(2)], axis=0), 1
  )


def _launch_in_this_process(script, flags):
  """Executes the run of a launch script in this process."""
  assert script == 'run_bt.py'
  defaults = {**names.defaults_of(run_bt.Settings), 'preset': ''}
  given = dict(flag.removeprefix('--').split('=', 1) for flag in flags)
  values = {name: type(defaults[name])(x) for name, x in given.items()}
  behaviors = values.pop('behavior').split(',')
  bt_acme.transfer(values.pop('env'), behaviors, progress='off', **values)
  return 0


def _runs(plan):
  runs = [*plan.evaluations, *plan.learning, *plan.launched]
  return records.with_needed(runs)


def test_a_finished_demo_is_shown_again_without_new_runs(finished, capsys):
  paths = [*finished.glob('results/*.json')]
  before = [path.stat().st_mtime for path in paths]
  assert len(before) == len(_runs(_PLAN)) == 6
  assert demo.run(_in(finished), launch=_launch_in_this_process) == 0
  assert before == [path.stat().st_mtime for path in paths]
  assert len([*finished.glob('results/*.json')]) == 6
  output = capsys.readouterr().out
  for text in (
    *('Reused the results of 3 of 3 runs.', 'Reused the results of 2 of 2'),
    *(f'\n{_TASK} ', 'Mean (lowest to highest) of ', 'Wall time:'),
  ):
    assert text in output
  columns = 'task random pi_p R2D2 fine-tuning R2D2 + BT'.split()
  assert columns in [line.split() for line in output.splitlines()]
  for name in ('curves_MultiRoom-N2-S4-fixed=1.png', 'visits.png'):
    assert (finished / name).read_bytes().startswith(b'\x89PNG')
  path = finished / 'control.gif'
  assert path.stat().st_size < 1_000_000
  with Image.open(path) as image:
    assert image.info['loop'] == 0
    frames = [frame.convert('RGB') for frame in ImageSequence.Iterator(image)]
  corners = np.array([frame.getpixel((1, 1)) for frame in frames])
  seen = {
    name
    for name, color in control_view.CONTROLLERS.values()
    if np.abs(corners - color).max(axis=1).min() <= 8
  }
  assert {'agent', 'flight'} <= seen


def test_the_launched_run_gets_budget_settings_and_seed(tmp_path):
  full = plan_lib.read('full')
  *others, bt = full.arms
  bt = dataclasses.replace(bt, settings={'min_flight_probability': 0.1})
  plan = _in(tmp_path, plan_lib.Plan(full.tasks, (*others, bt), (7, 1)))
  (pretraining,) = plan.launched[0].needed
  assert {
    *('--max_actor_steps=40000', '--seed=7', '--min_flight_probability=0.1'),
    f'--behavior={pretraining.exported(tmp_path)}',
  } < set(plan.flags)
  assert not any('lp_launch_type' in flag for flag in plan.flags)


def test_a_damaged_result_and_one_of_another_behavior_are_not_reused(finished):
  run = _PLAN.run('fine-tuning', _TASK, 3)
  result = finished / 'results' / f'{run.id}.json'
  card = run.needed[0].exported(finished) / 'behavior.json'
  before = {path: path.read_text() for path in (result, card)}
  checksum = json.loads(before[card])['params_sha256']
  assert run.is_done(finished)
  try:
    result.write_text(before[result][:-20])
    assert not run.is_done(finished)
    result.write_text(before[result])
    card.write_text(before[card].replace(checksum, '0' * len(checksum)))
    assert not run.is_done(finished) and run.result(finished) is None
    card.unlink()
    assert not run.needed[0].is_done(finished)
  finally:
    for path, text in before.items():
      path.write_text(text)


def test_the_table_has_a_row_for_each_task_and_a_number_for_each_seed(tmp_path):
  arms = [a for a in plan_lib.read('shipped').arms if a.init == '']
  plan = plan_lib.Plan(('a', 'b'), tuple(arms), (4, 7), tmp_path)
  runs = _runs(plan)
  (tmp_path / 'results').mkdir()
  for number, run in enumerate(runs):
    result = {'row': {'solved': number / 100}}
    (tmp_path / 'results' / f'{run.id}.json').write_text(json.dumps(result))
  header, _, *lines = report.table(plan).splitlines()
  assert header.split() == 'task random pi_p R2D2 R2D2 + BT'.split()
  for task, line in zip(('a', 'b'), lines, strict=True):
    cells = (
      *(('random', 4), ('pi_p', 4), ('R2D2', 4), ('R2D2', 7)),
      *(('R2D2 + BT', 4), ('R2D2 + BT', 7)),
    )
    numbers = [runs.index(plan.run(name, task, seed)) for name, seed in cells]
    assert line.split() == [task, *map(str, numbers)]
  assert {run.seed for run in plan.learning[:4]} == {4}
  assert report.conclusion(plan) == (
    'Mean (lowest to highest) of 4 runs each: R2D2 solves 8% (5% to 11%) of '
    'the episodes, R2D2 + BT 7% (4% to 10%).'
  )


def test_the_video_shows_the_solved_episode_with_the_most_controllers():
  own, extra, flight = core_types.OWN, core_types.EXTRA, core_types.FLIGHT
  episodes = [
    ([0] * 3, [own, extra, flight], 0.0),
    ([0] * 2, [own, own], 0.9),
    ([0] * 4, [own, own, own, extra], 0.5),
    ([0] * 3, [flight, own, own], 0.1),
  ]
  assert report.most_informative(episodes) == episodes[3]
