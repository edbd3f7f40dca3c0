"""The supervisor, with an engine that runs no processes, in virtual time.

A test scripts the attempts of each node. Attempts without a script run until
they are told to stop.
"""

import contextlib
import queue as queue_lib
import signal
import types

import launchpad as lp
import pytest

from bt_acme.runtime import events, heartbeats, supervised_nodes, supervisor
from bt_acme.runtime.engines import base
from tests.simulation import clock as clock_lib
from tests.simulation import engine as engine_lib

_KILLED, _LOST = -signal.SIGKILL, {'code': -signal.SIGKILL, 'lost': True}
_TITLES = ('learner/0', 'server/0', 'actor/0', 'actor/1', 'coordinator/0')


class Engine(base.Engine):
  """Records all calls, and calls the functions of a script.

  Attributes:
    calls: tuples of time, method or signal, and title.
    script: by title, one function for each attempt.
    deaf: labels of nodes that ignore the request to stop.
    on_place: called instead of `scheduled`, with engine, title and addresses.
    on_signal: called before each signal, with engine, title and number; if it
      returns True, the node does not get the signal.
  """

  def __init__(self, script, deaf, on_place, on_signal):
    self.clock = clock_lib.Clock()
    no_disk = types.SimpleNamespace(used_by=contextlib.nullcontext)
    super().__init__(engine_lib.Queue(self.clock, no_disk))
    self.queue = self._queue
    self.clock.after(10_000.0, lambda: pytest.fail('the program never ends'))
    self.calls = []
    self.attempts = []
    self.environments = {}
    self.script = {k.replace('_', '/'): list(v) for k, v in script.items()}
    self.deaf = deaf
    self.on_place, self.on_signal = on_place, on_signal

  def scheduled(self, title, addresses):
    self.queue.put(events.NodeScheduled(title, addresses))

  def _record(self, call, title):
    self.calls.append((self.clock.now, call, title))

  def place(self, title, num_ports):
    self._record('place', title)
    self.on_place(self, title, [f'10.0.0.1:{i}' for i in range(num_ports)])

  def start(self, title, executable, environment):
    self._record('start', title)
    self.attempts.append(f'{title} {environment[heartbeats.ATTEMPT_VARIABLE]}')
    self.environments[title] = environment
    attempts = self.script.get(title)
    if attempts:
      attempts.pop(0)(self, title)
    return 'process 1 on 10.0.0.1'

  def signal(self, title, signum):
    self._record(signal.Signals(signum).name, title)
    is_deaf = signum == signal.SIGTERM and title.startswith(self.deaf)
    if not self.on_signal(self, title, signum) and not is_deaf:
      self.queue.put(events.NodeExited(title, -signum))

  def release(self, title):
    self._record('release', title)

  def close(self):
    self._record('close', '')

  def titles(self, call):
    return [title for _, name, title in self.calls if name == call]

  def times(self, call, title):
    return [now for now, *words in self.calls if words == [call, title]]

  @property
  def restarted(self):
    """The attempts after the first one of each node."""
    return self.attempts[len(_TITLES) :]


def send(mark):
  return lambda engine, title: engine.queue.put(
    events.Output(title, 'heartbeats', mark)
  )


work = send(heartbeats.MARK)


def end(code, node='', **how):
  return lambda engine, title: engine.queue.put(
    events.NodeExited(node or title, code, **how)
  )


finish = end(0, 'coordinator/0')


def refuse(engine, title):
  raise OSError('no file')


def fail(engine, title):
  text = b'Traceback ...\nOSError: no disk\n'
  engine.queue.put(events.Output(title, 'stderr', text))
  engine.queue.put(events.NodeExited(title, 1))


def interrupt(engine, title):
  engine.queue.put(signal.SIGINT)


def both(*parts):
  return lambda engine, title: [part(engine, title) for part in parts]


def later(seconds, part):
  return lambda engine, title: engine.clock.after(
    seconds, lambda: part(engine, title)
  )


die = both(work, end(_KILLED))


def make_program():
  program = lp.Program('test')
  for title in _TITLES:
    label, _, _ = title.partition('/')
    kind = lp.CourierNode if label == 'server' else lp.PyNode
    program.add_node(kind(print), label)
  return program


@pytest.fixture(name='launch')
def make_launch(tmp_path):
  def launch(
    most=3,
    deaf=(),
    on_place=Engine.scheduled,
    on_signal=lambda *_: False,
    **script,
  ):
    """Runs a program; returns its exit code and the engine."""
    engine = Engine(script, deaf, on_place, on_signal)
    engine.program = make_program()
    rules = supervisor.Rules(
      checked_labels=['learner'],
      grace_seconds=5.0,
      max_restarts_per_hour=most,
      restarted_labels={'server': ['actor'], 'actor': []},
      next_program=make_program,
      watchdog_seconds=600.0,
    )
    code = supervisor.Supervisor(
      lambda: engine,
      engine.queue,
      tmp_path,
      rules,
      environments={'server': {'GREETING': 'hello'}},
      ports={'server': 1234},
      clock=engine.clock.monotonic,
    ).run(engine.program)
    return code, engine

  return launch


def test_nodes_are_scheduled_started_stopped_and_released(
  launch, tmp_path, capsys
):
  def say(engine, title):
    engine.queue.put(events.Output(title, 'stdout', b'hello\n'))

  code, engine = launch(learner_0=[say], actor_0=[say], coordinator_0=[finish])
  assert code == 0
  calls = [(call, title) for _, call, title in engine.calls]
  assert calls == [
    *(('place', title) for title in _TITLES),
    *(('start', title) for title in _TITLES),
    ('SIGTERM', 'learner/0'),
    # These would lose nothing.
    *(('SIGKILL', title) for title in _TITLES[1:4]),
    *(('release', title) for title in _TITLES),
    ('close', ''),
  ]
  assert engine.environments['server/0']['GREETING'] == 'hello'
  assert 'GREETING' not in engine.environments['coordinator/0']
  lines = capsys.readouterr().err.splitlines()
  assert sorted(lines) == ['[actor/0] hello', '[learner/0] hello']
  log = (tmp_path / 'processes' / 'learner-0.log').read_text()
  assert log.startswith('--- ')
  assert log.endswith(', process 1 on 10.0.0.1\nhello\n')


def test_nothing_starts_before_every_node_is_scheduled(launch, capsys):
  def place_late(engine, title, addresses):
    if title != 'server/0':
      return engine.scheduled(title, addresses)
    engine.queue.put(events.NodePending(title, 'no machine has a GPU'))
    found = events.NodeScheduled(title, ['10.0.0.7:1'], 'far')
    engine.clock.after(60.0, lambda: engine.queue.put(found))

  code, engine = launch(on_place=place_late, coordinator_0=[finish])
  assert code == 0
  assert engine.times('start', 'learner/0') == [60.0]
  errors = capsys.readouterr().err
  message = '[server/0] waiting to be scheduled: no machine has a GPU\n'
  assert errors.startswith(message)
  # The server gets the user's port, on the machine that the engine selected.
  (server,) = engine.program.groups['server']
  assert server.courier_address.resolve() == '10.0.0.7:1234'
  assert 'Listening without a password: server/0 at 10.0.0.7:1234.' in errors


def test_a_node_that_cannot_be_scheduled_ends_the_program(launch, capsys):
  reason = 'cannot be scheduled: no machine has 8 GPUs.'
  refuse_place = end(1, reason=reason)
  code, engine = launch(on_place=lambda *args: refuse_place(*args[:2]))
  assert code == 1 and not engine.attempts
  assert engine.titles('release') == [*_TITLES]
  assert capsys.readouterr().err == f'error: learner/0 {reason}\n'


def test_ctrl_c_ends_the_wait_for_a_slot(launch):
  code, engine = launch(on_place=lambda *args: interrupt(*args[:2]))
  assert code == 130 and not engine.attempts
  assert engine.titles('close')


def test_a_slot_that_is_lost_before_the_start_is_replaced(launch, capsys):
  lose = end(_KILLED, reason='could not be scheduled: lost.', lost=True)

  def place(engine, title, addresses):
    is_first = engine.titles('place').count(title) == 1
    if is_first and title in ('learner/0', 'actor/1'):
      lose(engine, title)
    else:
      engine.scheduled(title, addresses)

  code, engine = launch(on_place=place, coordinator_0=[finish])
  assert code == 0 and not engine.restarted
  assert engine.titles('place').count('actor/1') == 2
  line = 'lost. Rescheduling (restart 2 of 3 allowed per hour).'
  assert line in capsys.readouterr().err
  code, engine = launch(on_place=place, most=1)
  assert code == 1 and not engine.attempts


def test_an_actor_restarts_while_the_others_keep_running(
  launch, tmp_path, capsys
):
  code, engine = launch(actor_0=[die, finish])
  assert code == 0 and engine.restarted == ['actor/0 1']
  line = (
    'actor/0 was killed (SIGKILL); the machine may be out of memory. '
    'Restarting (restart 1 of 3 allowed per hour).\n'
  )
  assert capsys.readouterr().err.endswith(line)
  folder = tmp_path / 'processes'
  assert (folder / 'launcher.log').read_text().endswith(line)
  assert (folder / 'actor-0.log').read_text().count('--- ') == 2
  # It keeps its slot.
  assert engine.titles('place').count('actor/0') == 1


def test_each_node_has_a_restart_budget(launch, tmp_path, capsys):
  code, engine = launch(most=2, actor_0=[die] * 2, actor_1=[die] * 3)
  assert code == 1
  assert sorted(engine.restarted) == [
    *('actor/0 1', 'actor/0 2'),
    *('actor/1 1', 'actor/1 2'),
  ]
  errors = capsys.readouterr().err
  assert '\nerror: actor/1 was killed (SIGKILL)' in errors
  end = errors[errors.index('error: actor/1') :]
  assert (tmp_path / 'processes' / 'launcher.log').read_text().endswith(end)


def test_a_budget_limits_restarts_per_hour():
  budget = supervised_nodes.RestartBudget(2)
  assert budget.acquire(0.0) and budget.acquire(1800.0)
  assert str(budget) == 'restart 2 of 2 allowed per hour'
  assert not budget.acquire(1800.0)
  # More than an hour after the first; refusals do not count.
  assert budget.acquire(3601.0) and not budget.acquire(3601.0)
  assert budget.acquire(5401.0)


# A test of Ctrl-C during the shutdown has a program without restarts.
def test_without_restarts_the_first_failure_ends_the_program(launch, capsys):
  code, engine = launch(most=0, actor_0=[die])
  assert code == 1 and not engine.restarted
  assert 'Restarting' not in capsys.readouterr().err


@pytest.mark.parametrize('title', ['actor_0', 'learner_0'])
@pytest.mark.parametrize(
  'first, message',
  [
    (fail, 'Traceback ...\nOSError: no disk\n'),
    (refuse, 'could not be started: no file.\n'),
  ],
)
def test_a_first_attempt_that_fails_would_only_fail_again(
  launch, capsys, title, first, message
):
  code, engine = launch(**{title: [first]})
  assert code == 1 and not engine.restarted
  assert engine.titles('release') == [*_TITLES]
  assert capsys.readouterr().err.endswith(message)


def test_failures_before_the_first_heartbeat_are_retried_elsewhere_later(
  launch, capsys
):
  code, engine = launch(
    most=5, actor_0=[die, fail, refuse, fail, both(work, fail), finish]
  )
  assert code == 0
  starts = engine.times('start', 'actor/0')
  assert starts == [0.0, 0.0, 1.0, 11.0, 71.0, 71.0]
  # The first attempt had worked; the others may have had a bad machine.
  assert engine.times('place', 'actor/0') == [0.0, 1.0, 11.0, 71.0]
  errors = capsys.readouterr().err
  assert 'Restarting (restart 1 of 5' in errors
  assert 'no disk. Restarting in 1 s (restart 2 of' in errors
  line = 'could not be started: no file. Restarting in 10 s (restart 3'
  assert line in errors


def test_a_node_that_has_lost_its_slot_gets_another_one(launch):
  code, engine = launch(actor_0=[both(work, end(**_LOST)), finish])
  assert code == 0 and engine.restarted == ['actor/0 1']
  assert engine.titles('place').count('actor/0') == 2


def test_a_slot_may_be_lost_while_its_node_waits(launch):
  code, engine = launch(
    actor_0=[die, both(fail, later(0.5, end(**_LOST))), finish]
  )
  assert code == 0
  # The backoff starts again.
  assert engine.times('start', 'actor/0') == [0.0, 0.0, 10.5]


def test_a_server_that_has_lost_its_address_restarts_the_program(launch):
  code, engine = launch(
    server_0=[both(work, end(**_LOST))], coordinator_0=[work, finish]
  )
  assert code == 0
  assert engine.restarted == [f'{title} 0' for title in _TITLES]


def test_actors_restart_with_their_server(launch, capsys):
  code, engine = launch(
    server_0=[work],
    actor_0=[work, finish],
    actor_1=[both(end(0), end(_KILLED, 'server/0'))],
  )
  # An actor that had exited stays so, and the other one has not failed.
  assert code == 0 and engine.restarted == ['server/0 1', 'actor/0 1']
  assert 'actor/0 was killed' not in capsys.readouterr().err
  # A node that has exited has released its slot before the end.
  assert engine.titles('release').count('actor/1') == 2
  assert engine.titles('release').count('actor/0') == 1


@pytest.mark.parametrize('title', ['actor_0', 'coordinator_0'])
def test_a_node_that_another_program_has_stopped_has_failed(
  launch, capsys, title
):
  stop = both(send(heartbeats.STOP_MARK), end(0))
  if title == 'actor_0':
    code, engine = launch(actor_0=[both(work, stop), finish])
    assert engine.restarted == ['actor/0 1']
  else:
    code, engine = launch(coordinator_0=[stop], actor_0=[work, finish])
    assert engine.restarted == [f'{title} 0' for title in _TITLES]
  assert code == 0
  line = 'was stopped by another program (SIGTERM). '
  assert line in capsys.readouterr().err


def test_the_program_restarts_after_a_failure_of_the_learner(launch, capsys):
  code, engine = launch(
    # A learner that has worked may fail at the start of the next program.
    learner_0=[die, fail],
    coordinator_0=[work, work, finish],
  )
  assert code == 0
  assert engine.restarted == [f'{title} 0' for title in _TITLES] * 2
  errors = capsys.readouterr().err
  assert 'Restarting the program from its last checkpoint (restart 2' in errors
  assert 'error:' not in errors


def test_the_program_has_a_restart_budget(launch, capsys):
  code, engine = launch(most=2, learner_0=[end(_KILLED)] * 3)
  assert code == 1 and len(engine.restarted) == 2 * len(_TITLES)
  last = capsys.readouterr().err.splitlines()[-1]
  assert last.startswith('error: learner/0 was killed')


# How long nodes may take to stop: five seconds, or six times as long if they
# save the result, or one if the program restarts and they have nothing to save.
@pytest.mark.parametrize(
  'deaf, coordinator, seconds',
  [
    ('learner', end(_KILLED), 5.0),
    ('learner', interrupt, 5.0),
    ('learner', finish, 30.0),
    ('actor', end(_KILLED), 1.0),
    ('actor', interrupt, 5.0),
    ('actor', finish, 5.0),
  ],
)
def test_shutdown_timeouts(launch, capsys, deaf, coordinator, seconds):
  working = dict.fromkeys(('learner_0', 'actor_0', 'actor_1'), [work])
  code, engine = launch(
    deaf=(deaf,), coordinator_0=[both(work, coordinator), finish], **working
  )
  assert engine.times('SIGKILL', f'{deaf}/0')[0] == seconds
  errors = capsys.readouterr().err
  is_lost = deaf == 'learner'
  assert (f'learner/0 did not stop within {seconds:g} s' in errors) == is_lost
  assert ('Its unsaved state is lost.' in errors) == is_lost
  if coordinator is interrupt:
    assert code == 130
  elif coordinator is finish:
    assert code == is_lost
  else:
    assert engine.restarted


def test_a_node_that_has_saved_loses_nothing_if_it_is_slow_to_exit(
  launch, capsys
):
  saved = both(work, send(heartbeats.SAVED_MARK))
  code, engine = launch(
    deaf=('learner',), learner_0=[saved], coordinator_0=[finish]
  )
  assert code == 0 and 'learner/0' in engine.titles('SIGKILL')
  assert 'did not stop' not in capsys.readouterr().err


@pytest.mark.parametrize(
  'names, kills',
  [('INT', 0), ('INT INT', 1), ('HUP HUP', 0), ('TERM TERM INT', 1)],
)
def test_a_later_ctrl_c_kills_all_nodes_at_once(launch, capsys, names, kills):
  signums = [signal.Signals['SIG' + name] for name in names.split()]

  def send_all(engine, title):
    for signum in signums:
      engine.queue.put(signum)

  code, engine = launch(
    deaf=('learner', 'actor'),
    # Its second attempt sends no heartbeat, so the first signal kills it.
    actor_0=[die],
    coordinator_0=[both(work, later(3.0, send_all))],
  )
  assert code == 128 + signums[-1] and engine.restarted == ['actor/0 1']
  assert engine.times('SIGKILL', 'actor/0')[0] == 3.0
  # The learner is not killed: the replay may already have been filled.
  assert engine.times('SIGKILL', 'learner/0') == [3.0 if kills else 8.0]
  errors = capsys.readouterr().err
  assert (f'{signums[-1].name}: killing everything.' in errors) == kills
  assert ('did not stop' in errors) != kills


@pytest.mark.parametrize('moment', ['at_failure', 'at_start', 'stopping'])
def test_ctrl_c_ends_a_program_that_restarts(launch, moment):
  def on_signal(engine, title, signum):
    if moment == 'stopping':
      interrupt(engine, title)

  attempts = {
    'at_failure': [both(end(_KILLED), interrupt)],
    'at_start': [end(_KILLED), interrupt],
    'stopping': [end(_KILLED)],
  }[moment]
  code, engine = launch(on_signal=on_signal, learner_0=attempts)
  assert code == 130
  assert len(engine.restarted) == len(_TITLES) * (moment == 'at_start')


@pytest.mark.parametrize('name, expected', [('learner_0', 1), ('server_0', 0)])
def test_a_failure_while_stopping_counts_in_checked_nodes(
  launch, capsys, name, expected
):
  def fail_instead(engine, title, signum):
    is_failing = title == name.replace('_', '/')
    if is_failing and signum == signal.SIGTERM:
      fail(engine, title)
      return True

  code, _ = launch(
    on_signal=fail_instead, coordinator_0=[finish], **{name: [work]}
  )
  assert code == expected
  assert ('OSError: no disk' in capsys.readouterr().err) == bool(expected)


@pytest.mark.parametrize('last, expected', [(0, 130), (1, 1)])
def test_ctrl_c_during_the_shutdown_lets_nodes_save(launch, last, expected):
  def interrupt_once(engine, title, signum):
    if (title, signum) == ('learner/0', signal.SIGTERM):
      interrupt(engine, title)

  code, engine = launch(
    *(0, ('learner',)),
    on_signal=interrupt_once,
    coordinator_0=[both(work, end(last))],
  )
  assert code == expected
  # The learner had its whole timeout before it was killed.
  assert engine.times('SIGKILL', 'learner/0') == [5.0]


def test_hung_nodes_are_killed_servers_first(launch, capsys):
  code, engine = launch(
    learner_0=[work],
    server_0=[both(work, later(590.0, work))],
    # Another one has never sent a heartbeat, so it may be compiling.
    actor_0=[work, work],
    coordinator_0=[later(612.0, finish)],
  )
  # The program restarts after the learner has failed.
  assert engine.times('SIGKILL', 'learner/0')[0] == pytest.approx(601, abs=1)
  line = 'learner/0 sent no heartbeat for 600 s and was killed. Restarting the'
  assert line in capsys.readouterr().err
  code, engine = launch(
    learner_0=[both(work, later(590.0, work))],
    actor_0=[work, work],
    server_0=[both(work, later(590.0, work))],
    coordinator_0=[later(612.0, finish)],
  )
  assert code == 0 and engine.restarted == ['actor/0 1']
  # It may have waited for one of the two servers.
  assert engine.times('SIGKILL', 'actor/0')[0] == pytest.approx(609, abs=1)


def test_time_in_which_the_launcher_was_suspended_does_not_count(
  launch, monkeypatch
):
  get = engine_lib.Queue.get

  def suspended(self, timeout):
    if 300 < self._clock.now < 1000:
      self._clock.now += 1000
      raise queue_lib.Empty
    return get(self, timeout)

  monkeypatch.setattr(engine_lib.Queue, 'get', suspended)
  code, engine = launch(actor_0=[work], coordinator_0=[later(1700.0, finish)])
  assert code == 0 and engine.restarted == ['actor/0 1']
  assert engine.times('SIGKILL', 'actor/0')[0] == pytest.approx(1609, abs=2)


def test_a_killed_node_whose_exit_is_not_posted_is_lost(launch):
  code, engine = launch(
    on_signal=lambda engine, *_: engine.clock.now < 650,
    actor_0=[work],
    coordinator_0=[later(700.0, finish)],
  )
  assert code == 0 and engine.restarted == ['actor/0 1']
  (killed, *_), (_, placed) = (
    engine.times(call, 'actor/0') for call in ('SIGKILL', 'place')
  )
  assert 59 < placed - killed < 62


def test_a_node_without_a_heartbeat_is_reported_once(launch, capsys):
  working = both(work, later(300.0, work))
  code, _ = launch(
    **dict.fromkeys(('learner_0', 'server_0', 'actor_0'), [working]),
    coordinator_0=[later(605.0, finish)],
  )
  assert code == 0
  errors = capsys.readouterr().err
  assert errors.count('[actor/1] no heartbeat after') == 1
  assert '[actor/0] no heartbeat' not in errors
  assert 'server/0 at 10.0.0.1:1234' in errors
