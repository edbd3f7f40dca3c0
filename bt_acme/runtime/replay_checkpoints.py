"""Saves and restores the replay's part of a checkpoint, written by Reverb.

Reverb writes its whole table to a directory: the sequences, their priorities
and the counts of the rate limiter. The table is blocked only while Reverb lists
the items, not while it writes their contents. The directory is temporary:
complete saves are linked into the next checkpoint, others are removed.

The replay server must outlive the learner, which saves when it is told to stop.
The learner therefore holds a kernel lock (`flock`) on a file while it uses the
replay, and the server waits for this lock. The kernel releases the lock
whenever the learner exits.
"""

import contextlib
import fcntl
import pathlib
import shutil
import time
from collections.abc import Iterator
from typing import Any

from bt_acme import config as config_lib
from bt_acme import files, untrusted
from bt_acme.config import run as run_config
from bt_acme.replay import fields, memory_estimate
from bt_acme.runtime import checkpoints

_POLL_SECONDS = 0.05
# The replay of the newest checkpoint, and the next replay while it is written.
_MOST_ON_DISK = 2


def layout(config: config_lib.ReplayConfig) -> dict[str, Any]:
  """Returns the layout, which determines whether a run can read a saved replay.

  All other settings of a replay are fixed for the whole run.
  """
  return {
    'codec': config.codec,
    'fields': [*(field.name for field in fields.SCALARS), 'frames'],
  }


def check(run: run_config.RunConfig, config: config_lib.ReplayConfig) -> None:
  """Checks the replay from which a run is about to resume.

  Args:
    run: the run.
    config: the configuration of the replay.

  Raises:
    ValueError: if the replay is damaged or has another layout. The message is
      one line that names the possible fixes.
  """
  if not run.checkpoint_replay:
    return
  replay = checkpoints.newest_replay(run.checkpoint_folder)
  problem = _problem(replay, layout(config)) if replay else ''
  if replay and problem:
    raise ValueError(
      f'{replay.folder} {problem}. Delete this directory to resume with an '
      'empty replay, or its parent to resume from the previous checkpoint.'
    )


def shortage(run: run_config.RunConfig, num_bytes: int) -> str:
  """Returns a warning if the disk is too small for checkpoints, else ''.

  Args:
    run: the run.
    num_bytes: the approximate size of the full replay in bytes.
  """
  needed = _MOST_ON_DISK * num_bytes
  free = shutil.disk_usage(run.workdir).free
  if not run.checkpoint_replay or free >= needed:
    return ''
  size = memory_estimate.size_in_words
  return (
    f'checkpoints with a full replay need about {size(needed)}, but the disk '
    f'of workdir={run.workdir!r} has {size(free)} left. Choose another disk, '
    'or set checkpoint_replay=False. Once the disk is full, checkpoints keep '
    'the last replay that fit.'
  )


def _problem(replay: checkpoints.Replay, expected: dict[str, Any]) -> str:
  """Returns the reason why a run cannot use a replay; empty if it can."""
  if replay.layout != expected:
    found = untrusted.shortened(str(dict(replay.layout)))
    return f'has the layout {found}, but this run needs {expected}'
  for name, checksum in replay.sha256.items():
    try:
      untrusted.check_sha256(replay.folder / name, checksum)
    except (OSError, untrusted.InvalidFileError) as error:
      return f'has no intact file {name} ({untrusted.one_line(error)})'
  return ''


def scratch(run: run_config.RunConfig) -> pathlib.Path:
  """Returns the directory that a replay server writes to."""
  # This name makes other code treat it as a leftover of a failed write.
  folder = pathlib.Path(run.checkpoint_folder).absolute() / '.partial-replay'
  return folder / 'replay'


def clear(run: run_config.RunConfig) -> None:
  """Removes everything that a replay server has written to its directory."""
  with contextlib.suppress(FileNotFoundError):
    for path in scratch(run).iterdir():
      shutil.rmtree(path)


def take(
  run: run_config.RunConfig, config: config_lib.ReplayConfig, client: Any
) -> checkpoints.Replay | None:
  """Saves the current replay on the server, and waits until it is written.

  Args:
    run: the run.
    config: the configuration of the replay.
    client: a `reverb.Client`.

  Returns:
    The replay in the server's scratch directory; None if the run does not save
    replays.

  Raises:
    OSError: if the replay cannot be written, or the server has exited.
  """
  if not run.checkpoint_replay:
    return None
  try:
    folder = pathlib.Path(client.checkpoint())
  except Exception as error:  # Reverb has an exception class for each status.
    raise OSError(untrusted.one_line(error)) from error
  sums = {path.name: untrusted.sha256(path) for path in folder.iterdir()}
  files.sync_tree(folder)
  return checkpoints.Replay(folder, sums, layout(config))


@contextlib.contextmanager
def in_use(run: run_config.RunConfig) -> Iterator[None]:
  """Keeps the replay server running while this context is active."""
  path = _lock_path(run)
  path.parent.mkdir(parents=True, exist_ok=True)
  with path.open('w') as file:
    # Without locks in the file system, the server exits with the other nodes.
    with contextlib.suppress(OSError):
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    yield


def wait_until_unused(run: run_config.RunConfig, seconds: float) -> None:
  """Waits until no learner uses the replay, for at most `seconds`."""
  deadline = time.monotonic() + seconds
  with contextlib.suppress(OSError), _lock_path(run).open('r+') as file:
    while time.monotonic() < deadline:
      try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
      except BlockingIOError:
        time.sleep(_POLL_SECONDS)


def _lock_path(run: run_config.RunConfig) -> pathlib.Path:
  return scratch(run).with_name('learner.lock')
