"""The launch scripts as a user types them: separate processes, real servers.

What is needed of a whole run is asserted on one: NGU, stopped midway and
resumed with actions chosen elsewhere, and Behavior Transfer with what it
exported.
"""

import csv
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid

import jax
import numpy as np
import psutil
import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

from bt_acme import behaviors
from bt_acme.cli import evaluation

_ROOT = pathlib.Path(__file__).parents[1]
_MARK = 'BT_ACME_TEST_MARK'
_TINY = (
  '--env=MiniGrid-Empty-5x5-v0',
  '--num_actors=1',
  '--envs_per_actor=4',
  '--torso_size=16',
  '--lstm_size=16',
  '--head_size=16',
  '--trace_length=8',
  '--sequence_period=4',
  '--batch_size=4',
  '--min_replay_size=4',
  '--max_replay_size=500',
  '--samples_per_insert=1',
  '--variable_update_period=8',
  '--evaluation_period=100000',
  '--evaluation_episodes=2',
)
_NGU = ('--memory_capacity=100', '--embedding_size=8', '--rnd_size=8')


_ENVIRONMENT = {**os.environ, 'PYTHONPATH': str(_ROOT)}


class Script:
  """A launch script under way."""

  def __init__(self, script, workdir, *arguments):
    self.mark = uuid.uuid4().hex
    self.process = subprocess.Popen(
      [
        sys.executable,
        _ROOT / 'launch' / f'{script}.py',
        *_TINY,
        f'--workdir={workdir}',
        *arguments,
      ],
      env={**_ENVIRONMENT, _MARK: self.mark},
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
    )

  def __enter__(self):
    return self

  def __exit__(self, *exc_info):
    self.process.kill()
    self.process.wait()
    for process in self.survivors():
      process.kill()

  def end(self, seconds=200):
    """Waits for the end; code, standard output, standard error."""
    output, errors = self.process.communicate(timeout=seconds)
    assert not self.survivors()
    return self.process.returncode, output, errors

  def survivors(self):
    """Its processes that still run."""
    found = []
    for process in psutil.process_iter():
      try:
        if process.environ().get(_MARK) == self.mark:
          found.append(process)
      except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
        continue
    return found


def run(script, workdir, *arguments):
  with Script(script, workdir, *arguments) as process:
    return process.end()


def wait_until(condition, process, seconds=150):
  deadline = time.monotonic() + seconds
  while not condition():
    assert process.poll() is None, process.communicate()
    assert time.monotonic() < deadline
    time.sleep(0.1)


def rows(workdir, label):
  path = workdir / 'logs' / label / 'logs.csv'
  if not path.exists():
    return []
  with path.open() as file:
    return list(csv.DictReader(file))


def checkpoint(workdir):
  """Arrays and values of the newest checkpoint."""
  path = max(
    (workdir / 'checkpoints').iterdir(),
    key=lambda path: int(path.name.split('-')[1]),
  )
  with np.load(path / 'arrays.npz') as arrays:
    return dict(arrays), json.loads((path / 'values.json').read_text())[
      'values'
    ]


def seen(values):
  """Observations that the statistics of the intrinsic reward hold."""
  return sum(
    sum(s['error_count']) for s in values['learner']['statistics'].values()
  )


# Runs launch scripts, each in a process of its own that begins with all
# imports done. Reads lists of arguments, writes (code, output, errors).
_SERVER = """
import json, os, runpy, sys, tempfile
import bt_acme
import launchpad, rlax
from bt_acme.cli import run as run_script
from bt_acme.config import run as run_config
from bt_acme.runtime import program
from bt_acme.runtime.engines import processes as launching

for line in sys.stdin:
  arguments = json.loads(line)
  files = [tempfile.TemporaryFile('w+') for _ in range(2)]
  child = os.fork()
  if not child:
    for number, file in zip((1, 2), files):
      os.dup2(file.fileno(), number)
    code = 99
    try:
      sys.argv = arguments
      runpy.run_path(arguments[0], run_name='__main__')
    except SystemExit as end:
      code = end.code or 0
    finally:
      sys.stdout.flush()
      sys.stderr.flush()
      os._exit(code)
  _, status = os.waitpid(child, 0)
  for file in files:
    file.seek(0)
  print(json.dumps([os.waitstatus_to_exitcode(status),
    *(file.read() for file in files)]), flush=True)
"""


@pytest.fixture(name='type_command', scope='module')
def start_server():
  process = subprocess.Popen(
    [sys.executable, '-c', _SERVER],
    env=_ENVIRONMENT,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )

  def type_command(script, *arguments):
    words = [str(_ROOT / 'launch' / f'{script}.py'), *map(str, arguments)]
    process.stdin.write(json.dumps(words) + '\n')
    process.stdin.flush()
    return json.loads(process.stdout.readline())

  yield type_command
  process.stdin.close()
  process.wait()


@pytest.fixture(name='ngu', scope='module')
def run_ngu(tmp_path_factory, type_command):
  """A run that was interrupted, resumed, and started once more when done."""
  workdir = tmp_path_factory.mktemp('runs') / 'ngu'
  arguments = ('run_ngu', workdir, *_NGU, '--max_actor_steps=1000')
  with Script(*arguments, '--num_evaluators=0') as process:
    wait_until(lambda: len(rows(workdir, 'actor')) >= 2, process.process)
    wait_until(lambda: rows(workdir, 'learner'), process.process)
    start = time.monotonic()
    process.process.send_signal(signal.SIGINT)
    interrupted = process.end(15)
    stopped_in = time.monotonic() - start
  first = checkpoint(workdir)
  resumed = run(*arguments, '--inference=server')
  second = checkpoint(workdir)
  again = type_command(
    'run_ngu', *_TINY, f'--workdir={workdir}', *arguments[2:]
  )
  return {
    'workdir': workdir,
    'interrupted': interrupted,
    'stopped_in': stopped_in,
    'first': first,
    'resumed': resumed,
    'second': second,
    'again': again,
    'arguments': arguments,
  }


def test_interrupted_run_ends_cleanly(ngu):
  code, _, errors = ngu['interrupted']
  assert code == 130, errors
  assert 'Traceback' not in errors
  print(f'stopped in {ngu["stopped_in"]:.1f} s')


def test_interrupted_run_saved_all(ngu):
  _, values = ngu['first']
  assert values['counts']['learner_steps'] >= 1
  assert values['learner']['learner_steps'] == values['counts']['learner_steps']
  assert 0 < values['counts']['actor_steps'] < 1000
  assert seen(values) > 0


def test_resumed_run_goes_on(ngu):
  code, output, errors = ngu['resumed']
  assert code == 0, errors
  assert output.startswith('Resuming NGUConfig')
  (arrays, values), (arrays_after, values_after) = ngu['first'], ngu['second']
  # The budget is met to within a turn, over both lives together.
  assert 1000 <= values_after['counts']['actor_steps'] <= 1003
  learner_steps = values['learner']['learner_steps']
  assert values_after['learner']['learner_steps'] > learner_steps
  # The state itself counts: parameters, optimizers and their step counts.
  counts = [a for a in arrays.values() if a.dtype == np.int32 and a.shape == ()]
  assert len(counts) >= 3
  assert all(c == learner_steps for c in counts)
  assert all(
    a == values_after['learner']['learner_steps']
    for a in arrays_after.values()
    if a.dtype == np.int32 and a.shape == ()
  )
  maximum = values['learner']['max_priority']
  assert values_after['learner']['max_priority'] >= maximum >= 1
  # Each observation of either life is in the statistics; those of steps that
  # the first did not report in time are not.
  assert seen(values) < seen(values_after) <= 1003 + 3 * 32 * 4
  assert seen(values_after) - seen(values) >= (
    1000 - values['counts']['actor_steps'] - 32 * 4
  )


def test_a_run_is_evaluated_as_what_it_exported(ngu, type_command):
  folders = {
    'workdir': ngu['workdir'],
    'behavior': ngu['workdir'] / 'behavior',
  }
  loaded = [
    evaluation.load(evaluation.EvaluationConfig(**{name: str(folder)}))[1:]
    for name, folder in folders.items()
  ]
  jax.tree.map(np.testing.assert_array_equal, *loaded)
  assert loaded[0][1].error_count > 0
  outputs = [
    type_command('evaluate', f'--{name}={folder}', '--episodes=2')
    for name, folder in folders.items()
  ]
  assert outputs[0][0] == 0, outputs[0]
  assert outputs[0][:2] == outputs[1][:2]


def test_statistics_go_on_wherever_actions_are_chosen(ngu):
  """From local to the server in the resumed run, and here back again."""
  workdir = ngu['workdir'].with_name('ngu_longer')
  shutil.copytree(ngu['workdir'], workdir)
  code, _, errors = run(
    'run_ngu',
    workdir,
    *_NGU,
    '--max_actor_steps=1100',
    '--lp_launch_type=local_mt',
  )
  assert code == 0, errors
  before, between, after = (
    np.concatenate([s['error_count'] for _, s in sorted(saved.items())])
    for saved in (
      values['learner']['statistics']
      for _, values in (ngu['first'], ngu['second'], checkpoint(workdir))
    )
  )
  assert len(before) == len(between) == len(after) == 4
  assert np.all(before < between) and np.all(between < after)


def test_progress_of_a_resumed_run_begins_where_it_was(ngu):
  _, output, _ = ngu['resumed']
  first = re.search(r'actor steps ([\d,]+) / 1,000', output)
  steps = int(first[1].replace(',', ''))
  assert steps >= ngu['first'][1]['counts']['actor_steps']


def test_completed_run_ends_at_once(ngu):
  code, output, errors = ngu['again']
  assert code == 0, errors
  assert 'has taken its 1,000 actor steps' in output
  assert str(ngu['workdir'] / 'behavior') in output


def test_logs_of_a_run(ngu):
  learner = rows(ngu['workdir'], 'learner')
  steps = [int(row['learner_steps']) for row in learner]
  assert steps == sorted(steps) and len(steps) >= 2
  for name in ('loss', 'gradient_norm', 'mean_reward', 'replay_size'):
    assert np.isfinite([float(row[name]) for row in learner]).all()
  actor = rows(ngu['workdir'], 'actor')
  assert len(actor) > 4
  assert any(float(row['intrinsic_return']) > 0 for row in actor)
  # The evaluation of what the learner ended with.
  evaluator = rows(ngu['workdir'], 'evaluator')
  assert len(evaluator) == 2
  assert all(int(row['actor_steps']) >= 1000 for row in evaluator)
  folder = ngu['workdir'] / 'logs'
  assert {path.name for path in folder.iterdir()} == {
    'actor',
    'evaluator',
    'learner',
  }
  assert all(list(path.glob('events.*')) for path in folder.iterdir())


def test_what_is_printed_is_no_noise(ngu):
  for _, output, errors in (ngu['interrupted'], ngu['resumed']):
    assert 'MB of steps' in output
    for line in errors.splitlines():
      assert line.startswith('SIGINT: stopping'), line


def test_the_exported_behavior_is_what_the_learner_ended_with(ngu):
  behavior = behaviors.Exported(str(ngu['workdir'] / 'behavior'))
  arrays, values = ngu['second']
  assert behavior.actor_steps == values['counts']['actor_steps']
  assert behavior.agent.spec.name == 'MiniGrid-Empty-5x5-v0'
  assert behavior.statistics.error_count == seen(values)
  exported = jax.tree.leaves(behavior.variables)
  assert len(exported) > 10
  for leaf in exported:
    assert any(np.array_equal(leaf, array) for array in arrays.values())


@pytest.fixture(name='bt', scope='module')
def run_bt(ngu):
  """A run with the behavior of the other, in threads."""
  folder = ngu['workdir'] / 'behavior'
  before = {p.name: p.read_bytes() for p in folder.iterdir()}
  workdir = ngu['workdir'].with_name('bt')
  result = run(
    'run_bt',
    workdir,
    f'--behavior={folder}',
    f'--init_from={folder}',
    '--init=partial',
    '--max_actor_steps=600',
    '--lp_launch_type=local_mt',
    '--inference=server',
    '--min_flight_probability=0.05',
  )
  return workdir, result, folder, before


def test_transfer_of_the_exported_behavior(bt):
  workdir, (code, output, errors), folder, before = bt
  assert code == 0, errors
  assert output.startswith('Starting BTConfig')
  # It stays as it is, to the byte.
  assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
  actor, evaluator = rows(workdir, 'actor'), rows(workdir, 'evaluator')
  assert sum(float(row['flights']) for row in actor) > 0
  assert any(0 < float(row['behavior_share']) <= 1 for row in actor)
  assert len(evaluator) == 2
  assert all(float(row['flight_share']) == 0 for row in evaluator)
  learner = rows(workdir, 'learner')
  assert any(float(row['duplicated_share']) > 0 for row in learner)
  assert np.isfinite([float(row['loss']) for row in learner]).all()


_FAILING = """
import sys

from bt_acme import agents, behaviors
from bt_acme import config as config_lib
from bt_acme.cli import run as run_script
from bt_acme.config import run as run_config
from bt_acme.runtime import program
from bt_acme.runtime.engines import processes as launching

def make_policy(seed):
  steps = iter([0, 1, 2])
  return lambda observation, prev_action, is_first: next(steps)

if __name__ == '__main__':
  run = run_config.RunConfig(env='MiniGrid-Empty-5x5-v0', workdir=sys.argv[1],
    num_actors=1, envs_per_actor=1, num_evaluators=0)
  network = config_lib.NetworkConfig(torso_size=8, lstm_size=8, head_size=8)
  base = agents.R2D2Builder(config_lib.R2D2Config(network=network),
    run_script.environment_spec(run))
  builder = agents.BTBuilder(
    base, [behaviors.FromCallable(make_policy, name='mine')])
  sys.exit(launching.launch(program.make_program(run, builder),
    workdir=sys.argv[1], launch_type='local_mt', checked_labels=['learner']))
"""


def test_an_actor_that_fails_ends_the_program(tmp_path):
  script = tmp_path / 'failing.py'
  script.write_text(_FAILING)
  done = subprocess.run(
    [sys.executable, script, tmp_path / 'run'],
    env=_ENVIRONMENT,
    capture_output=True,
    text=True,
    timeout=200,
  )
  assert done.returncode == 1, done.stderr
  report = done.stderr[done.stderr.index('error: actor failed') :]
  assert 'Traceback' in report
  assert "RuntimeError: behavior 'mine' raised StopIteration:" in report
  assert 'at actor step 3 of environment 0' in report
  # What the learner had is saved all the same.
  assert checkpoint(tmp_path / 'run')[1]['learner']['learner_steps'] == 0


@pytest.fixture(name='refuse')
def make_refuse(type_command, tmp_path):
  """Types what must be refused before anything starts or is written."""

  def refuse(script, *arguments, workdir=None):
    workdir = workdir or tmp_path / 'run'
    before = contents(tmp_path), contents(workdir)
    code, output, errors = type_command(
      script, *_TINY, f'--workdir={workdir}', *arguments
    )
    assert code == 2, errors
    assert errors.startswith('error: ') and errors.count('\n') == 1, errors
    assert not output
    assert (contents(tmp_path), contents(workdir)) == before
    return errors

  return refuse


def contents(folder):
  return {p: p.read_bytes() for p in folder.rglob('*') if p.is_file()}


@pytest.mark.parametrize(
  'script, arguments, message',
  [
    ('run_ngu', ['--env=montezumas_revenge'], "mean 'montezuma_revenge'"),
    (
      'run_ngu',
      ['--intrinsic_reward=icm'],
      "intrinsic_reward='icm'",
    ),
    ('run_ngu', ['--max_actor_steps=0'], 'max_actor_steps=0 must be positive'),
    ('run_ngu', ['--num_actors=two'], 'num_actors'),
    ('run_ngu', ['--no_such_flag=1'], 'no_such_flag'),
    ('run_ngu', ['--preset=huge'], "preset='huge' is unknown"),
    ('run_ngu', ['--lp_launch_type=cloud'], 'lp_launch_type'),
    ('run_ngu', ['--lp_launch_type=vertex_ai'], "'vertex_ai' is unknown"),
    ('run_ngu', ['--num_devices=2'], 'num_devices=2, but the learner has 1'),
    ('run_ngu', ['--replay_port=70000'], 'replay_port=70000 must lie in'),
    (
      'run_ngu',
      ['--max_actor_steps=100', '--min_replay_size=50'],
      'fewer than min_replay_size=50: the learner would never start',
    ),
    ('run_ngu', ['--sequence_period=3'], 'sequence_period=3 does not divide'),
    (
      'run_ngu',
      ['--env=pong', '--max_replay_size=1000000000', '--max_actor_steps=100'],
      'max_replay_size is too large for this machine',
    ),
    ('run_bt', [], "behavior='' names nothing"),
    ('run_bt', ['--behavior=nowhere'], "'nowhere' is neither a folder"),
    (
      'run_bt',
      ['--behavior=uniform', '--behavior_weights=1,2'],
      'behavior_weights=(1.0, 2.0) must be one weight',
    ),
    (
      'run_bt',
      ['--behavior=uniform', '--behavior_weights=x'],
      "behavior_weights='x' must be numbers",
    ),
    ('run_r2d2', ['--init_from=nowhere'], "init_from='nowhere' has no"),
    ('run_r2d2', ['--init=half'], "init='half' is unknown"),
    ('run_r2d2', ['--init=partial'], "init_from='' loads none"),
  ],
)
def test_bad_input(refuse, script, arguments, message):
  assert message in refuse(script, *arguments)


@pytest.mark.parametrize(
  'argument, message',
  [
    ('--seed=-1', 'seed=-1 must lie in'),
    ('--epsilon=nan', 'epsilon=nan must be finite'),
    ('--epsilon=1.5', 'epsilon=1.5 must not exceed 1'),
  ],
)
def test_bad_input_of_an_evaluation(type_command, argument, message):
  code, output, errors = type_command('evaluate', '--behavior=x', argument)
  assert code == 2 and not output
  assert errors.startswith(f'error: {message}') and errors.count('\n') == 1


def test_taken_port(refuse):
  with socket.socket() as server:
    server.bind(('', 0))
    server.listen()
    port = server.getsockname()[1]
    errors = refuse('run_r2d2', f'--replay_port={port}')
  assert f'replay_port={port} cannot be used' in errors


def test_workdir_of_another_run(refuse, ngu):
  errors = refuse(
    'run_ngu', *_NGU, '--seed=3', '--batch_size=5', workdir=ngu['workdir']
  )
  assert 'batch_size=4 there and 5 here' in errors
  assert 'seed=0 there and 3 here' in errors
  errors = refuse('run_r2d2', workdir=ngu['workdir'])
  assert "agent='NGUConfig' there and 'R2D2Config' here" in errors


def test_behavior_of_another_environment(refuse, ngu):
  folder = ngu['workdir'] / 'behavior'
  for flag in ('behavior', 'init_from'):
    errors = refuse(
      'run_bt', '--behavior=uniform', f'--{flag}={folder}', '--env=pong'
    )
    assert f'{flag}={str(folder)!r} was made for observations' in errors


def test_weights_of_another_architecture(refuse, ngu):
  folder = ngu['workdir'] / 'behavior'
  errors = refuse('run_r2d2', f'--init_from={folder}', '--lstm_size=8')
  assert "init='full' needs the same architecture" in errors
  assert 'lstm/linear/w is (40, 64) there and (32, 32) here' in errors


@pytest.mark.parametrize(
  'script, own', [('run_ngu', 'intrinsic_reward'), ('run_bt', 'behavior')]
)
def test_help(type_command, script, own):
  code, output, errors = type_command(script, '--help')
  assert code == 0 and not errors
  assert output.splitlines()[0].endswith('.')
  for name in ('lp_launch_type=local_mp', 'preset=paper', 'num_actors', own):
    assert f'  --{name}' in output
  assert 'launch/' in output and '--workdir=' in output


def test_a_script_as_a_process(tmp_path):
  """The same without the short cut."""
  code, output, errors = run('run_r2d2', tmp_path / 'run', '--env=chess')
  assert code == 2 and not output
  assert errors.startswith("error: environment 'chess' is unknown")
  assert not (tmp_path / 'run').exists()
