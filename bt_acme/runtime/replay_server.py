"""The replay server as a node of a Launchpad program.

The server starts with the replay of the newest checkpoint, and exits after the
learner.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import launchpad as lp
import reverb

from bt_acme.config import run as run_config
from bt_acme.runtime import checkpoints, heartbeats, replay_checkpoints

# Seconds for the learner to save; less than a launcher's shutdown timeout.
_LEARNER_ENDS_SECONDS = 9.0


class ReplayServer(lp.ReverbNode):
  """A Reverb server whose tables are part of the run's checkpoints."""

  def __init__(self, run: run_config.RunConfig, make_tables: Any):
    """Initializes the node, without tables.

    Args:
      run: the run.
      make_tables: makes the tables; called in the process of the server.
    """
    super().__init__(
      lambda: _with_heartbeats(make_tables), lambda: make_checkpointer(run)
    )
    self._own_run = run

  def run(self) -> None:
    """Serves until the program stops and the learner has ended."""
    lp.register_stop_handler(heartbeats.report_stopping)
    super().run()
    replay_checkpoints.wait_until_unused(self._own_run, _LEARNER_ENDS_SECONDS)


def _with_heartbeats(make_tables: Callable[[], Any]) -> Any:
  """Makes the tables, and then starts to send heartbeats."""
  tables = make_tables()  # A node that fails before a heartbeat is not retried.
  # `run` blocks, so the heartbeats only show that this process is running.
  if heartbeats.is_supervised():
    threading.Thread(target=_send_heartbeats, daemon=True).start()
  return tables


def _send_heartbeats() -> None:
  send = heartbeats.make_heartbeat()
  while True:
    send()
    time.sleep(heartbeats.PERIOD)


def make_checkpointer(
  run: run_config.RunConfig,
) -> reverb.checkpointers.CheckpointerBase | None:
  """Makes a checkpointer that loads the newest replay and writes new ones.

  Also removes the leftovers of interrupted saves.

  Args:
    run: the run.

  Returns:
    A checkpointer; None if the run's checkpoints do not include the replay.
  """
  if not run.checkpoint_replay:
    return None
  folder = replay_checkpoints.scratch(run)
  folder.mkdir(parents=True, exist_ok=True)
  replay_checkpoints.clear(run)
  newest = checkpoints.newest_replay(run.checkpoint_folder)
  return reverb.checkpointers.DefaultCheckpointer(
    str(folder),
    fallback_checkpoint_path=None if newest is None else str(newest.folder),
  )
