"""What all nodes of a run share: base class, context and phases.

A node depends neither on Launchpad nor on any other engine (only how often it
reports differs in a run of one process), and its clients may be other processes
or the other nodes themselves. In its own process or thread, `run` iterates
until the node has finished or is told to stop. An engine that runs all nodes in
one thread calls `start`, `iterate`, `stop` and `close` itself.
"""

import abc
import contextlib
import dataclasses
import enum
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from bt_acme.config import run as run_config
from bt_acme.runtime import seeds

# Seconds until the next iteration of a node with more to do, and of a node that
# has to wait for others.
AT_ONCE, POLL_SECONDS = 0.0, 0.5

_T = TypeVar('_T')


class Phase(enum.IntEnum):
  """The phases of a run in order, set by the coordinator and polled by others.

  A run never returns to an earlier phase. Courier sends a phase as a plain
  integer, which compares equal to the phase.
  """

  STARTING = 0  # The learner restores its checkpoint and compiles.
  RUNNING = 1  # Actors act and the learner learns.
  LEARNER_FINISHES = 2  # The budget is used up; the learner saves and exports.
  EVALUATORS_FINISH = 3  # Evaluators evaluate the final parameters.
  DONE = 4  # All nodes have finished, which ends the program.


def call_with_timeout(function: Callable[[], _T], seconds: float) -> _T | None:
  """Calls a function that may block forever, such as a call to a failed node.

  Returns:
    The result; None after a timeout or an error.
  """
  results: list[_T] = []

  def call() -> None:
    with contextlib.suppress(Exception):
      results.append(function())

  thread = threading.Thread(target=call, daemon=True)
  thread.start()
  thread.join(seconds)
  return results[0] if results else None


@dataclasses.dataclass(frozen=True)
class Context:
  """The context of one node, independent of the engine that runs it.

  It tells the node when to stop and provides clients of the nodes that it
  calls. A client has the public methods of its node. Between processes it is a
  Courier client; in one process it is the node itself.

  Attributes:
    wait_for_stop: waits until the program is told to stop, or until a timeout
      in seconds (None waits indefinitely); returns whether it was told to stop.
      Only the node's own thread may call it.
    register_stop_handler: registers a function that is called once, from
      another thread or a signal handler, when the program is told to stop.
    coordinator: a client of the coordinator (`coordinator.Coordinator`).
    learner: a client of the learner (`learner_node.LearnerNode`).
    replay: a `reverb.Client` of the replay server.
    inference: a client of the inference server
      (`inference_node.InferenceNode`); None if every actor selects its own
      actions.
    attempt: the number of times that the node has been started before.
    send_heartbeat: sends a heartbeat. A node calls it whenever it makes
      progress, for the first time once slow compilation is done.
    report_saved: reports that the node has nothing left to save. If it is slow
      to exit, it may then be killed.
    clock: returns seconds, like `time.monotonic`.
    call_with_timeout: calls a function with a timeout in seconds; see the
      function of that name.
  """

  wait_for_stop: Callable[[float | None], bool]
  register_stop_handler: Callable[[Callable[[], None]], None]
  coordinator: Any = None
  learner: Any = None
  replay: Any = None
  inference: Any = None
  attempt: int = 0
  send_heartbeat: Callable[[], None] = lambda: None
  report_saved: Callable[[], None] = lambda: None
  clock: Callable[[], float] = time.monotonic
  call_with_timeout: Callable[[Callable[[], Any], float], Any] = (
    call_with_timeout
  )


class Node(abc.ABC):
  """A node, which works in iterations.

  Attributes:
    is_warm: whether the node has compiled its functions. The watchdog expects
      heartbeats from then on.
  """

  is_warm = False

  def __init__(self, run: run_config.RunConfig, context: Context):
    """Initializes a node that has not started.

    Args:
      run: the run.
      context: the context of the node.
    """
    self._run = run
    self._context = context
    self._coordinator = context.coordinator
    self._learner = context.learner
    # A restarted node must not repeat its episodes.
    self._seed = seeds.for_node(run.seed, context.attempt)

  def start(self) -> None:  # noqa: B027
    """Prepares the iterations; called once, in the process of the node."""

  @abc.abstractmethod
  def iterate(self) -> float | None:
    """Does a bounded piece of work.

    Returns:
      Seconds to wait before the next iteration; None if the node has finished.
    """

  def stop(self) -> None:  # noqa: B027
    """Saves unfinished work; called when the node is told to stop."""

  def close(self) -> None:  # noqa: B027
    """Releases resources; called last, also after an error."""

  def run(self) -> None:
    """Iterates until the node has finished or is told to stop."""
    try:
      self.start()
      pause: float | None = AT_ONCE
      while pause is not None:
        if self._context.wait_for_stop(pause):
          self.stop()
          return
        pause = self.iterate()
        if self.is_warm:
          self._context.send_heartbeat()
    finally:
      self.close()
