"""Runs whose processes are killed or suspended: which nodes restart, which end.

Everything is real: a launch script, its processes, and SIGKILL. These tests are
slow; `chaos_test.py` always runs.
"""

import collections
import os
import re
import signal

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

from tests.launch import scripts

_ENDLESS = '--max_actor_steps=1000000'


class Run:
  """A run whose nodes can be sent signals by name."""

  def __init__(self, script, workdir):
    self.process = script.process
    self.end = script.end
    self.workdir = workdir

  def wait_until(self, condition):
    scripts.wait_until(condition, self.process, seconds=280)

  def pids(self, name):
    """Returns the PIDs of a node, one for each of its attempts."""
    path = self.workdir / 'processes' / f'{name}.log'
    text = path.read_text() if path.exists() else ''
    return [
      int(pid) for pid in re.findall(r'^--- .*process (\d+)$', text, re.M)
    ]

  def send(self, name, signum):
    os.kill(self.pids(name)[-1], signum)

  def rows_of_actor(self, index, session='0'):
    """Returns the episodes of an actor in a session of the run."""
    own = {str(4 * index + i) for i in range(4)}
    return [
      row
      for row in scripts.rows(self.workdir, 'actor')
      if row['environment'] in own and row['session'] == session
    ]

  def wait_for_start(self, session='0'):
    """Waits until both actors act, and the learner learns and has saved."""
    self.wait_until(
      lambda: (
        all(self.rows_of_actor(i, session) for i in range(2))
        and any(
          row['session'] == session
          for row in scripts.rows(self.workdir, 'learner')
        )
        and list((self.workdir / 'checkpoints').glob('checkpoint-*'))
      )
    )

  def notes(self):
    return (self.workdir / 'processes' / 'launcher.log').read_text()


@pytest.fixture(name='start')
def make_start(tmp_path):
  running = []

  def start(*arguments):
    workdir = tmp_path / 'run'
    script = scripts.Script(
      'run_ngu',
      workdir,
      *scripts.NGU,
      '--num_actors=2',
      '--checkpoint_period=2',
      *arguments,
    )
    running.append(script)
    return Run(script, workdir)

  yield start
  for script in running:
    script.__exit__()


@pytest.mark.slow
def test_a_run_survives_failures_of_all_kinds(start):
  run = start(_ENDLESS, '--evaluation_period=2000')
  run.wait_for_start()
  first = len(run.rows_of_actor(0))
  run.send('actor-0', signal.SIGKILL)
  run.send('evaluator-0', signal.SIGTERM)  # Not sent by the launcher.
  run.wait_until(lambda: len(run.pids('actor-0')) == 2)
  others = len(run.rows_of_actor(1))
  run.wait_until(lambda: len(run.rows_of_actor(0)) > first + 4)
  assert len(run.rows_of_actor(1)) > others
  assert len(run.pids('actor-1')) == len(run.pids('learner-0')) == 1
  points = len(scripts.rows(run.workdir, 'evaluator'))
  run.wait_until(lambda: len(scripts.rows(run.workdir, 'evaluator')) > points)
  run.send('learner-0', signal.SIGKILL)
  run.wait_for_start(session='1')
  # The counts continue from a checkpoint.
  assert int(run.rows_of_actor(0, '1')[0]['actor_steps']) > 0
  # Ctrl-C while an actor restarts.
  run.send('actor-1', signal.SIGKILL)
  run.wait_until(lambda: run.notes().count('\n') == 4)
  run.process.send_signal(signal.SIGINT)
  code, _, errors = run.end(60)
  assert code == 130, errors
  notes = run.notes().splitlines()
  for title, note in zip(
    ('actor/0', 'evaluator/0', 'learner/0', 'actor/1'),
    (*sorted(notes[:2], key=lambda note: 'evaluator' in note), *notes[2:]),
    strict=True,
  ):
    what = ' the program' if title == 'learner/0' else ''
    how = 'was killed (SIGKILL); the machine may'
    if title == 'evaluator/0':
      how = 'was stopped by another program (SIGTERM).'
    assert f'{title} {how}' in note
    assert f'Restarting{what}' in note and '(restart 1 of 3 allowed' in note
    assert note.partition(f' {title}')[2] in errors
  assert 'error:' not in errors and 'Traceback' not in errors
  # Each evaluation has exactly two episodes.
  evaluations = collections.Counter(
    row['evaluation_point'] for row in scripts.rows(run.workdir, 'evaluator')
  )
  assert set(evaluations.values()) == {2}
  assert {'0', '2000'} <= set(evaluations)


@pytest.mark.slow
def test_a_run_reaches_its_budget_after_failures(start):
  run = start('--max_actor_steps=12000', '--evaluation_period=2000')
  run.wait_for_start()
  for name in ('actor-0', 'actor-1', 'evaluator-0'):
    run.send(name, signal.SIGKILL)
  code, _, errors = run.end()
  assert code == 0, errors
  _, values = scripts.checkpoint(run.workdir)
  # Each actor overshoots by less than one step of its environments.
  assert 12_000 <= values['counts']['actor_steps'] < 12_000 + 2 * 4
  points = collections.Counter(
    int(row['evaluation_point'])
    for row in scripts.rows(run.workdir, 'evaluator')
  )
  assert points == dict.fromkeys(range(0, 12001, 2000), 2)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['replay-0', 'coordinator-0', 'inference-0'])
def test_a_server_that_is_killed(start, name):
  run = start(_ENDLESS, '--inference=server', '--num_evaluators=0')
  run.wait_for_start()
  run.send(name, signal.SIGKILL)
  run.wait_until(lambda: len(run.pids(name)) == 2)
  if name == 'inference-0':
    episodes = [len(run.rows_of_actor(i)) for i in range(2)]
    run.wait_until(
      lambda: all(len(run.rows_of_actor(i)) > episodes[i] + 4 for i in range(2))
    )
    # The actors restart with the server, which is not their own failure.
    assert len(run.pids('actor-0')) == 2 and run.notes().count('\n') == 1
    assert len(run.pids('learner-0')) == 1
  else:
    run.wait_for_start(session='1')
  run.process.send_signal(signal.SIGINT)
  code, _, errors = run.end(60)
  assert code == 130 and 'Traceback' not in errors, errors


@pytest.mark.slow
@pytest.mark.parametrize('name', ['actor-0', 'learner-0', 'replay-0'])
def test_a_hung_process_is_restarted(start, name):
  run = start(_ENDLESS, '--watchdog_seconds=20', '--num_evaluators=0')
  run.wait_for_start()
  run.send(name, signal.SIGSTOP)
  run.wait_until(lambda: len(run.pids(name)) == 2)
  title = name.replace('-', '/')
  assert f'{title} sent no heartbeat for 20 s and was killed' in run.notes()
  # No other node is blamed.
  assert run.notes().count('\n') == 1
  run.wait_for_start(session='0' if name == 'actor-0' else '1')
  run.process.send_signal(signal.SIGINT)
  code, _, errors = run.end(60)
  assert code == 130, errors
