"""Invariants that must hold after each failure, and at the end.

A ledger records the calls between processes, and compares them with the files
on the disk and the counts of the coordinator.
"""

import collections
import json
import pathlib
import signal

from bt_acme import untrusted
from bt_acme.runtime import checkpoints, workdir
from tests.simulation import nodes


class Ledger:
  """Record of a session, with the invariants that follow from it."""

  def __init__(self, session):
    self._session = session
    self._workdir = pathlib.Path(session.run.workdir)
    self._learner_steps = 0  # Of the current learner.
    # Number, actor steps and learner steps of the newest complete checkpoint.
    self._saved = (0, 0, 0)
    self._finished_budgets = set()
    self._unpruned = -1  # The newest checkpoint when the power failed.
    # Rows of each log at the learner's polls, by actor steps and learner steps.
    self._rows_at = {}
    self.command_starts()

  # Events.

  def command_starts(self):
    """Records the start of a command."""
    self._starts = collections.defaultdict(collections.deque)
    self._has_worked = set()
    self._excuses = []
    self._program_starts()

  def power_failed(self):
    """Records a power failure."""
    folder = pathlib.Path(self._session.run.checkpoint_folder)
    numbers = map(_number, folder.glob('checkpoint-*'))
    self._unpruned = max(numbers, default=0) + 1

  def program_restarts(self):
    """Records that the program restarts from its last checkpoint."""
    self._starts['program'].append(self._session.clock.now)
    # The restarts of these nodes were granted, but the program's came first.
    for title in self._awaited:
      self._starts[title].append(self._session.clock.now)
    self._program_starts()

  def _program_starts(self):
    self._attempts = {}  # The highest, by actor.
    self._expected = None  # Actor steps.
    self._awaited = set()  # Failed nodes that have not restarted.
    self._stopped_by_others = set()  # Processes that another program stops.

  def started(self, process):
    """Records the start of a process."""
    twins = [
      other.name
      for other in self._session.processes
      if other.title == process.title and not other.is_cut_off
    ]
    assert not twins, f'{process.name} starts while {twins} run'
    self._session.note(f'{process.name} starts')
    self._awaited.discard(process.title)
    if process.label == 'learner':
      self._learner_steps = 0
    if process.attempt:
      self._starts[process.title].append(self._session.clock.now)

  def others_stop(self, process):
    """Records that another program tells a process to stop."""
    self._stopped_by_others.add(process)

  def exited(self, process, code, lost):
    """Records the posted exit of a process."""
    self._session.note(f'{process.name} exits with {code} {"lost" * lost}')
    if code or process in self._stopped_by_others:
      self._awaited.add(process.title)
    if process.last_heartbeat >= 0:
      self._has_worked.add(process.title)
    elif code > 0 and process.title not in self._has_worked:
      self._excuses.append(f'{process.title} failed at its start')
    if process.label == 'learner' and code not in (0, -signal.SIGTERM):
      self._excuses.append('the learner failed')

  def learner_stepped(self, steps):
    """Records a step of the learner."""
    self._learner_steps = steps

  def called(self, caller, server, method, arguments, result):
    """Records an executed call."""
    if server.label == 'coordinator':
      self._coordinator_called(caller, server, method, arguments, result)
    is_silent = method == 'evaluation_done' and not caller.node.is_warm
    assert not is_silent, f'{caller.title} evaluates without heartbeats'
    is_at_work = method == 'report_acting' or (
      method == 'poll' and caller.label == 'evaluator'
    )
    if is_at_work and not caller.is_cut_off:
      self._session.works(caller.title)

  def _coordinator_called(self, caller, server, method, arguments, result):
    if method == 'poll' and caller.label == 'learner':
      learner, counts = caller.node, result[1]
      at = counts['actor_steps'], learner._learner.learner_steps
      logs = {'actor': server.node._logger('actor'), 'learner': learner._logger}
      rows = {k: log._table.num_rows for k, log in logs.items()}
      self._rows_at.setdefault(at, rows)  # Later rows may be unsynced.
    elif method == 'resume':
      self._expected = arguments[0].get('actor_steps', 0)
      # Steps that a failure has undone may be repeated with other episodes.
      last = self._expected, arguments[0].get('learner_steps', 0)
      self._rows_at = {k: v for k, v in self._rows_at.items() if k <= last}
    elif method in ('lease', 'report_acting'):
      actor, attempt = arguments[:2]
      highest = max(self._attempts.get(actor, 0), attempt)
      self._attempts[actor] = highest
      if method == 'report_acting' and attempt == highest:
        assert self._expected is not None
        self._expected += arguments[2]
    else:
      return
    counted = server.node.get_counts().get('actor_steps', 0)
    if self._expected is not None:
      assert counted == self._expected, (
        f'{counted} actor steps are counted instead of {self._expected}'
      )

  # Checks.

  def check(self):
    """Checks the logs and checkpoints on the disk."""
    if not self._workdir.exists():
      return
    with self._session.disk.used_by(None):
      self._check_logs()
      self._check_checkpoints()

  def check_ended(self, code):
    """Checks the state that a command has left.

    Args:
      code: the exit code of the command, or 'killed'.
    """
    self.check()
    with self._session.disk.used_by(None):
      is_completed = workdir.is_completed(self._session.run)
    if code == 0:
      assert is_completed, 'exit code 0 without the whole budget'
      self._check_completed()
    elif code == 130:
      assert self._session.is_interrupted, 'exit code 130 without Ctrl-C'
      self._check_nothing_lost()
    elif code == 1:
      self._check_excuse()
    else:
      assert code == 'killed', f'exit code {code}'
    if code != 'killed' and not self._session.was_full:
      path = self._workdir / 'run.lock'
      assert not path.exists(), 'the lock of the workdir is left'

  def check_left_behind(self):
    """Checks that the launcher has left no process behind."""
    left = [p.name for p in self._session.processes if not p.is_cut_off]
    assert not left, f'{left} keep running after the launcher has ended'

  def _check_excuse(self):
    """Checks that the failure of the run is justified."""
    most = self._session.run.max_restarts
    now = self._session.clock.now
    recent = [
      sum(now - start <= nodes.HOUR for start in starts)
      for starts in self._starts.values()
    ]
    is_excused = (
      any(number >= most for number in recent)
      or self._excuses
      or self._session.was_full
    )
    assert is_excused, f'exit code 1 after {dict(self._starts)} restarts'

  def _check_logs(self):
    run = self._session.run
    for label, key in (('actor', 'episode'), ('learner', 'learner_steps')):
      rows = read_rows(self._workdir, label)
      values = [row[key] for row in rows]
      assert len(set(values)) == len(values), (
        f'a row of the {label} is duplicated'
      )
      for name in ('actor_steps', 'seconds', 'session'):
        _check_rises(rows, name, label)
      if label == 'learner':
        _check_rises(rows, key, label)
      elif label == 'actor' and run.max_episode_rows < 1000:
        assert len(rows) <= 4 * run.max_episode_rows, 'too many rows'
    rows = read_rows(self._workdir, 'evaluator')
    seen = [(row['evaluation_point'], row['episode']) for row in rows]
    assert len(set(seen)) == len(seen), 'an evaluation is logged twice'
    for name in ('seconds', 'session'):
      _check_rises(rows, name, 'evaluator')

  def _check_checkpoints(self):
    folder = pathlib.Path(self._session.run.checkpoint_folder)
    paths = sorted(folder.glob('checkpoint-*'), key=_number)
    replays = {
      path.stat().st_ino
      for path in folder.rglob('size')
      if path.stat().st_nlink
    }
    # A power failure can restore recently removed files.
    newest = max(map(_number, paths), default=0)
    assert len(replays) <= 2 or newest <= self._unpruned, (
      f'{len(replays)} replays are on the disk'
    )
    for path in paths:
      arrays, values = _read(path)
      counts = values['counts']
      steps = int(arrays['steps'][0])
      assert steps == counts['learner_steps'], (
        f'{path.name} counts {counts["learner_steps"]} of {steps} steps'
      )
    if not paths:
      assert self._saved[0] == 0, 'the checkpoints are gone'
      return
    self._check_rows_of(values)
    self._check_scores_of(values)
    newest = (_number(paths[-1]), counts.get('actor_steps', 0), steps)
    assert newest >= self._saved, (
      f'the newest checkpoint is {newest} after {self._saved}'
    )
    self._saved = newest
    for path in folder.glob('evaluation-*'):
      _read(path)

  def _check_rows_of(self, values):
    """Checks that the logs match a checkpoint."""
    counts = values['counts']
    at = counts['actor_steps'], counts['learner_steps']
    if self._session.was_full:
      return  # Rows may be buffered.
    for label, number in self._rows_at.get(at, {}).items():
      rows = read_rows(self._workdir, label)
      assert len(rows) >= number, (
        f'the log of the {label} has {len(rows)} of {number} rows'
      )
      if number:
        last = rows[number - 1]
        assert all(last.get(k, 0) <= v for k, v in counts.items()), (
          f'the log of the {label} is ahead of the checkpoint'
        )

  def _check_scores_of(self, values):
    """Checks that a checkpoint has the score of each logged episode, once."""
    stores = values['learner']['flight_scores']
    stored = [x for one in stores for x in one['values'][0] if x]
    assert len({*stored}) == len(stored), 'an episode is scored twice'
    if self._session.was_full:
      return  # Rows may be buffered.
    last = values['counts']['actor_steps']
    rows = read_rows(self._workdir, 'actor')
    rows = [row for row in rows if row['actor_steps'] <= last]
    # Episodes that were scored, but whose actor failed before it logged them,
    # take places of the store, too.
    logged = {row['episode'] + 1 for row in rows[-nodes.SCORED_EPISODES // 2 :]}
    lost = logged.difference(stored)
    assert not lost, f'the scores of episodes {sorted(lost)} are lost'

  def _check_completed(self):
    run = self._session.run
    if run.max_actor_steps in self._finished_budgets:
      return
    self._finished_budgets.add(run.max_actor_steps)
    with self._session.disk.used_by(None):
      found = checkpoints.restore(run.checkpoint_folder, nodes.Learner.template)
      assert found is not None
      counts = found[1]['counts']
      over = counts['actor_steps'] - run.max_actor_steps
      most = run.num_actors * run.envs_per_actor
      assert 0 <= over < most, f'the budget is exceeded by {over} steps'
      self._check_evaluations(run)
      card = json.loads(
        (pathlib.Path(run.behavior_folder) / 'card.json').read_text()
      )
      assert card == [counts['learner_steps'], counts['actor_steps']], (
        'the behavior is not the final policy'
      )
      for steps in run.snapshots:
        path = pathlib.Path(run.snapshot_folder(steps)) / 'card.json'
        assert path.exists(), f'the snapshot of {steps} steps is missing'
        assert json.loads(path.read_text())[1] >= steps, (
          'a snapshot is too early'
        )

  def _check_evaluations(self, run):
    if not run.num_evaluators:
      return
    rows = read_rows(self._workdir, 'evaluator')
    seen = {(int(row['evaluation_point']), row['episode']) for row in rows}
    points = set(range(0, run.max_actor_steps + 1, run.evaluation_period))
    points |= self._finished_budgets
    missing = [
      (point, episode)
      for point in sorted(points)
      for episode in range(run.evaluation_episodes)
      if (point, episode) not in seen
    ]
    assert not missing, f'the evaluations {missing} are missing'
    for row in rows:
      assert row['actor_steps'] >= row['evaluation_point'], (
        'an evaluation was too early'
      )

  def _check_nothing_lost(self):
    """Checks that a run that was told to stop has saved all learner steps."""
    if self._excuses or self._session.was_full or self._session.is_hurried:
      return
    if 'lost' in self._session.printed():
      return
    assert self._saved[2] >= self._learner_steps or not self._learner_steps, (
      f'{self._saved[2]} of {self._learner_steps} learner steps are saved'
    )


def _check_rises(rows, name, label):
  values = [row[name] for row in rows if name in row]
  assert values == sorted(values), f'{name} goes back in the log of the {label}'


def _number(path):
  return int(path.name.partition('-')[2])


def _read(path):
  try:
    return checkpoints.read(path, nodes.Learner.template)
  except (OSError, ValueError) as error:
    raise AssertionError(
      f'{path.name} is damaged: {untrusted.one_line(error)}'
    ) from error


def read_rows(folder, label):
  """Reads a log, without an incomplete last line."""
  path = folder / 'logs' / label / 'logs.csv'
  if not path.exists():
    return []
  header, *lines = path.read_text().split('\n')
  names = header.split(',')
  rows = []
  for line in lines[:-1]:
    cells = line.split(',')
    assert len(cells) == len(names), (
      f'the row {line!r} of the {label} is incomplete'
    )
    rows.append({n: float(c) for n, c in zip(names, cells, strict=True) if c})
  return rows
