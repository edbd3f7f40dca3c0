"""Records the provenance of a run, one entry per session, in `provenance.json`.

A session lasts from the start of a command until it finishes or is stopped.
Each resume, including automatic ones after a failure, starts a new session. The
record states which code ran where and when, so that results can be traced.
"""

import datetime
import functools
import os
import pathlib
import platform
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax

from bt_acme import files, untrusted, version
from bt_acme.evaluation import logs
from bt_acme.runtime import resume_checks

_FILE = 'provenance.json'
_LABELS = ('actor', 'learner', 'evaluator')
_GIT_SECONDS = 10.0
# The number of sessions that are stored in addition to the first.
_MOST_RECENT = 100
_LONGEST = 1 << 24  # Bytes; a session takes about a thousand.


class Session(NamedTuple):
  """The current session of a run.

  Attributes:
    number: 0 for the first session, incremented with each resume.
    started: start time in seconds since 1970.
    seconds_before: the total duration of all earlier sessions, in seconds.
  """

  number: int
  started: float
  seconds_before: float

  def seconds(self, now: float) -> float:
    """Returns the duration of the run in seconds, over all sessions."""
    return self.seconds_before + now - self.started


def begin(
  workdir: str, params_sha256: Mapping[str, Any], **settings: Any
) -> None:
  """Records the start of a session.

  Args:
    workdir: the directory of the run.
    params_sha256: checksums of the parameters that were passed to the run.
    **settings: the settings of the session.
  """
  record = read(workdir)
  sessions = record.get('sessions', [])
  session = {
    'started': _text(time.time()),
    'ended': None,
    'seconds_before': _seconds_so_far(workdir, sessions),
    **_code(),
    'versions': _versions(),
    'host': socket.gethostname(),
    'device': None,
    'command': shlex.join(sys.argv),
    **settings,
  }
  kept = [*sessions[:1], *sessions[1:][-_MOST_RECENT:]]
  record = {
    'params_sha256': params_sha256,
    'dropped': record.get('dropped', 0) + len(sessions) - len(kept),
    'sessions': [*kept, session],
  }
  files.write_json(pathlib.Path(workdir) / _FILE, record)


def note_device(workdir: str) -> None:
  """Records the device of this process as the device of the learner."""
  devices = jax.devices()
  names = (devices[0].platform, devices[0].device_kind)
  # Platform and device kind of a CPU are both 'cpu'.
  device = ' '.join(dict.fromkeys(names))
  if len(devices) > 1:
    device = f'{len(devices)} x {device}'
  _change_last(workdir, device=device)


def end(workdir: str) -> None:
  """Records the end of the session."""
  _change_last(workdir, ended=_text(time.time()))


def current(workdir: str) -> Session:
  """Returns the newest session, or a new first session if none is recorded."""
  record = read(workdir)
  if not record.get('sessions'):
    return Session(0, time.time(), 0.0)
  session = record['sessions'][-1]
  number = record.get('dropped', 0) + len(record['sessions']) - 1
  return Session(number, _time(session['started']), session['seconds_before'])


def last_settings(workdir: str) -> dict[str, Any]:
  """Returns the settings of the newest session, as far as recorded."""
  session = (read(workdir).get('sessions') or [{}])[-1]
  return {x: session[x] for x in resume_checks.OF_SESSION if x in session}


def read(workdir: str) -> dict[str, Any]:
  """Reads the record; returns an empty one if the run has none.

  `sessions` contains the first and the most recent sessions; `dropped` is the
  number of sessions in between.

  Raises:
    ValueError: if the record is damaged.
  """
  path = pathlib.Path(workdir) / _FILE
  try:
    record: dict[str, Any] = untrusted.read_json(path, longest=_LONGEST)
    if 'lives' in record:  # The old name, used until 0.1.
      record['sessions'] = record.pop('lives')
    for session in record['sessions']:
      _time(session['started'])
      float(session['seconds_before'])
    int(record.get('dropped', 0))
    return record
  except FileNotFoundError:
    return {}
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise ValueError(
      f'workdir={workdir!r}: {_FILE} is damaged ({error}). Delete it to '
      'continue the run without the record.'
    ) from error


def seconds_until_end(session: Mapping[str, Any]) -> float | None:
  """Returns the seconds that a run took until the end of a session.

  A session whose end precedes its start counts as 0 seconds: the clock was set.

  Args:
    session: one of the `sessions` of the record.

  Returns:
    The duration of this and all earlier sessions; None if its end is unknown.
  """
  if session.get('ended') is None:
    return None
  before: float = session['seconds_before']
  lasted = _time(session['ended']) - _time(session['started'])
  return before + max(0.0, lasted)


def _change_last(workdir: str, **values: Any) -> None:
  record = read(workdir)
  if record.get('sessions'):
    record['sessions'][-1].update(values)
    files.write_json(pathlib.Path(workdir) / _FILE, record)


def _seconds_so_far(workdir: str, sessions: list[dict[str, Any]]) -> float:
  """Returns the total duration of all sessions, as far as known."""
  if not sessions:
    return 0.0
  seconds = seconds_until_end(sessions[-1])
  if seconds is not None:
    return seconds
  # The session was killed; its last log row is the best estimate of its end.
  before: float = sessions[-1]['seconds_before']
  return max(before, *(logs.last(workdir, x, 'seconds') for x in _LABELS))


def _text(seconds: float) -> str:
  moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
  return moment.isoformat(timespec='milliseconds')


def _time(text: str) -> float:
  return datetime.datetime.fromisoformat(text).timestamp()


@functools.lru_cache(maxsize=1)
def _versions() -> dict[str, str | None]:
  own = {'bt_acme': version.__version__, 'python': platform.python_version()}
  return {**own, **{name: version.installed(name) for name in version.PACKAGES}}


@functools.lru_cache(maxsize=1)
def _code() -> dict[str, Any]:
  """Returns the commit of the code and whether there are uncommitted changes.

  Both values are None if the package is not in its own checkout.
  """
  folder = pathlib.Path(version.__file__).parent
  # The package may be installed inside the checkout of another project.
  if _git(folder, 'ls-files', '--error-unmatch', 'version.py') is None:
    return {'commit': None, 'dirty': None}
  changes = _git(folder, 'status', '--porcelain', '--untracked-files=no')
  return {
    'commit': _git(folder, 'rev-parse', 'HEAD'),
    'dirty': None if changes is None else bool(changes),
  }


def _git(folder: pathlib.Path, *arguments: str) -> str | None:
  """Returns the output of git; None if it fails or is not installed."""
  # If the run is killed, no lock file of Git must be left behind.
  command = ['git', '--no-optional-locks', '-C', str(folder), *arguments]
  # A Git hook may have set variables for another checkout.
  own = {k: v for k, v in os.environ.items() if not k.startswith('GIT_')}
  try:
    done = subprocess.run(
      command, env=own, capture_output=True, text=True, timeout=_GIT_SECONDS
    )
  except (OSError, subprocess.SubprocessError):
    return None
  return None if done.returncode else done.stdout.strip()
