"""Whole programs from the launch scripts, with real servers and processes.

A few runs serve all tests: NGU, interrupted, and resumed with an inference
server; behavior transfer in threads with the exported behavior; and a program
whose actor fails.
"""

import json
import signal

import numpy as np
import pytest

import bt_acme
from tests.launch import scripts


@pytest.fixture(name='ngu', scope='module')
def run_ngu(tmp_path_factory, server):
  """Returns a run that was interrupted and resumed."""
  workdir = tmp_path_factory.mktemp('runs') / 'ngu'
  arguments = ('run_ngu', workdir, *scripts.NGU)
  # The run cannot complete before it is interrupted.
  endless = ('--max_actor_steps=10000000', '--num_evaluators=0')
  with scripts.Script(*arguments, *endless) as process:
    scripts.wait_until(
      lambda: (
        len(scripts.rows(workdir, 'actor')) >= 2
        and any(
          int(x['replay_size']) > 40 for x in scripts.rows(workdir, 'learner')
        )
      ),
      process.process,
    )
    process.process.send_signal(signal.SIGINT)
    interrupted = process.end(60)  # 15 s on an idle machine.
  first = scripts.checkpoint(workdir)
  budget = first['counts']['actor_steps'] + 600
  arguments = (*arguments, f'--max_actor_steps={budget}')
  resumed = server.train(*arguments, '--inference=server')
  return {
    'workdir': workdir,
    'interrupted': interrupted,
    'first': first,
    'resumed': resumed,
    'second': scripts.checkpoint(workdir),
    'budget': budget,
  }


def test_an_interrupted_run_ends_cleanly_and_saves_its_state(ngu):
  code, output, errors = ngu['interrupted']
  assert code == 130, errors
  assert output.endswith('\nStopped. Rerun the same command to resume.\n')
  assert 'Traceback' not in errors
  values = ngu['first']
  assert values['counts']['learner_steps'] >= 1
  assert values['learner']['learner_steps'] == values['counts']['learner_steps']
  assert values['counts']['actor_steps'] > 0
  assert scripts.seen(values) > 0


def test_resumed_run_continues(ngu):
  code, output, errors = ngu['resumed']
  assert code == 0, errors
  assert output.startswith('Resuming NGUConfig')
  assert str(ngu['workdir'] / 'behavior') in output
  values, values_after = ngu['first'], ngu['second']
  # Both sessions together exceed the budget by less than a step of all
  # environments.
  steps, steps_after = (
    v['counts']['actor_steps'] for v in (values, values_after)
  )
  assert ngu['budget'] <= steps_after <= ngu['budget'] + 3
  learner_steps = values['learner']['learner_steps']
  assert values_after['learner']['learner_steps'] > learner_steps
  # The statistics contain each observation once. Those of steps that are not
  # counted yet may be missing.
  seen = scripts.seen(values_after) - scripts.seen(values)
  assert abs(seen - (steps_after - steps)) <= 32 * 4


def test_resumed_run_restores_its_replay(ngu):
  learner = scripts.rows(ngu['workdir'], 'learner')
  before = [row for row in learner if row['session'] == '0']
  after = [row for row in learner if row['session'] == '1']
  # With an empty replay it would start at min_replay_size, which is 4.
  assert int(before[-1]['replay_size']) > 40
  sizes = [int(rows['replay_size']) for rows in (before[-1], after[0])]
  assert sizes[0] <= sizes[1] <= 500
  # Only the last checkpoint contains a replay.
  assert len(list(ngu['workdir'].rglob('chunks.tfrecord'))) == 1


def test_logs_of_a_run(ngu):
  learner = scripts.rows(ngu['workdir'], 'learner')
  for name in ('loss', 'gradient_norm', 'mean_reward', 'replay_size'):
    assert np.isfinite([float(row[name]) for row in learner]).all()
  actor = scripts.rows(ngu['workdir'], 'actor')
  assert len(actor) > 4
  assert any(float(row['intrinsic_return']) > 0 for row in actor)
  # There is one evaluation, of the final parameters.
  evaluator = scripts.rows(ngu['workdir'], 'evaluator')
  assert len(evaluator) == 2
  assert all(int(row['actor_steps']) >= ngu['budget'] for row in evaluator)
  folder = ngu['workdir'] / 'logs'
  names = sorted(path.name for path in folder.iterdir())
  assert names == ['actor', 'evaluator', 'learner']
  assert all(list(path.glob('events.*')) for path in folder.iterdir())


def test_sessions_of_a_run(ngu):
  record = json.loads((ngu['workdir'] / 'provenance.json').read_text())
  first, second = record['sessions']
  for session in (first, second):
    assert session['ended'] > session['started']
    assert session['device']  # Of the learner, in its process.
    assert 'run_ngu.py' in session['command']
  rows = scripts.rows(ngu['workdir'], 'actor')
  assert {row['environment'] for row in rows} <= set('0123')


def test_a_run_prints_no_noise(ngu):
  for _, output, errors in (ngu['interrupted'], ngu['resumed']):
    assert 'A full replay takes about' in output
    for line in errors.splitlines():
      assert line.startswith('SIGINT: stopping'), line


@pytest.fixture(name='bt', scope='module')
def run_bt(ngu, server):
  """Runs behavior transfer in threads, with the behavior of the NGU run.

  Two actors and an inference server share learned priorities.
  """
  folder = ngu['workdir'] / 'behavior'
  before = scripts.contents(folder)
  workdir = ngu['workdir'].with_name('bt')
  result = server.train(
    'run_bt',
    workdir,
    f'--behavior={folder},uniform',
    f'--init_from={folder}',
    '--init=partial',
    '--max_actor_steps=600',
    '--lp_launch_type=local_mt',
    '--inference=server',
    '--num_actors=2',
    '--envs_per_actor=2',
    '--flight_priorities=learned',
    '--priority_signal=novelty',
    '--min_flight_probability=0.05',
  )
  return workdir, result, folder, before


def test_transfer_of_the_exported_behavior(bt):
  workdir, (code, output, errors), folder, before = bt
  assert code == 0, errors
  assert output.startswith('Starting BTConfig')
  # The behavior's files are unchanged.
  assert scripts.contents(folder) == before
  actor, evaluator, learner = (
    scripts.rows(workdir, label) for label in ('actor', 'evaluator', 'learner')
  )
  assert sum(float(row['flights']) for row in actor) > 0
  assert any(0 < float(row['behavior_share']) <= 1 for row in actor)
  points = [int(row['evaluation_point']) for row in evaluator]
  assert points == [0, 0, 600, 600]
  assert [int(row['actor_steps']) for row in evaluator[:2]] == [0, 0]
  assert all(float(row['flight_share']) == 0 for row in evaluator)
  assert any(float(row['duplicated_share']) > 0 for row in learner)
  assert np.isfinite([float(row['loss']) for row in learner]).all()
  # The last evaluation is that of the learner's last step.
  assert evaluator[-1]['learner_steps'] == learner[-1]['learner_steps']


def test_actors_share_learned_priorities(bt):
  workdir, (_, _, errors), *_ = bt
  rows = scripts.rows(workdir, 'actor')
  flown = [int(row['flight_behavior']) for row in rows]
  assert {int(row['environment']) for row in rows} == {0, 1, 2, 3}, errors
  names = ['flight_priority_0', 'flight_priority_1']
  for row in rows:
    assert sum(float(row[name]) for name in names) == pytest.approx(1)
  for row in scripts.rows(workdir, 'evaluator'):
    assert not row.keys() & {*names}
  # One behavior flies in each episode, and each episode counts once.
  (scores,) = scripts.checkpoint(workdir)['learner']['flight_scores']
  assert scores['counts'] == [flown.count(0), flown.count(1)]
  assert sum(scores['counts']) > 1


def test_runs_are_loaded_evaluated_and_plotted(ngu, bt):
  run = bt_acme.load_run(bt[0])
  assert run.actor_steps == run.evaluations['actor_steps'][-1] >= 600
  assert len(run.episodes['flights']) == len(scripts.rows(bt[0], 'actor'))
  exported, uniform = run.agent.behaviors
  assert uniform.name == 'uniform'
  assert exported.folder == str(bt[0] / 'behaviors' / '0' / 'behavior')
  both = bt_acme.plots.learning_curves({'NGU': ngu['workdir'], 'BT': [run]})
  assert len(both.axes[0].lines) == 4
  assert bt_acme.evaluate(bt[0], episodes=2).returns.shape == (2,)
  for refused in (run.resume, lambda: run.save('copy')):
    with pytest.raises(ValueError, match='several processes. Rerun its comm'):
      refused()


_FAILING = """
import sys

from bt_acme import agents, assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.config import run as run_config
from bt_acme.runtime import program
from bt_acme.runtime import launcher

def make_policy(seed):
  steps = iter([0, 1, 2])
  return lambda observation, prev_action, is_first: next(steps)

if __name__ == '__main__':
  run = run_config.RunConfig(env='MiniGrid-Empty-5x5-v0', workdir=sys.argv[1],
    num_actors=1, envs_per_actor=1, num_evaluators=0)
  network = config_lib.NetworkConfig(torso_size=8, lstm_size=8, head_size=8)
  base = agents.R2D2Builder(config_lib.R2D2Config(network=network),
    assembly.spec_by_name(run.env))
  builder = agents.BTBuilder(
    base, [behaviors.FromCallable(make_policy, name='mine')])
  sys.exit(launcher.launch(program.make_program(run, builder),
    workdir=sys.argv[1], launch_type='local_mt',
    rules=program.rules(run, None)))
"""


def test_an_actor_that_fails_ends_the_program(tmp_path, server):
  script = tmp_path / 'failing.py'
  script.write_text(_FAILING)
  code, _, errors = server.run_file(script, tmp_path / 'run')
  assert code == 1, errors
  report = errors[errors.index('error: actor/0 failed') :]
  assert 'Traceback' in report
  assert "RuntimeError: behavior 'mine' raised StopIteration:" in report
  assert 'at actor step 3 of environment 0' in report
  # The state of the learner is saved all the same.
  values = scripts.checkpoint(tmp_path / 'run')
  assert values['learner']['learner_steps'] == 0
