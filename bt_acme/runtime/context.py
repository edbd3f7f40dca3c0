"""The context of a node, independent of the engine that runs it.

Nodes do not depend on Launchpad or any other engine. Their context tells them
when to stop and has clients of the nodes they call. A client has the public
methods of its node. Between processes it is a Courier client; in a test it can
be the node itself.
"""

import contextlib
import dataclasses
import threading
import time
from typing import Any, Callable, List, Optional, TypeVar

_T = TypeVar('_T')


def call_with_timeout(
  function: Callable[[], _T], seconds: float
) -> Optional[_T]:
  """Calls a function that may block forever, such as a call to a failed node.

  Returns:
    The result; None after a timeout or an error.
  """
  results: List[_T] = []

  def call() -> None:
    with contextlib.suppress(Exception):
      results.append(function())

  thread = threading.Thread(target=call, daemon=True)
  thread.start()
  thread.join(seconds)
  return results[0] if results else None


@dataclasses.dataclass(frozen=True)
class Context:
  """The context of one node.

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
    alive: sends a heartbeat. A node calls it whenever it makes progress, for
      the first time once slow compilation is done.
    saved: reports that the node has nothing left to save. If it is slow to
      exit, it may then be killed.
    clock: returns seconds, like `time.monotonic`.
    call_with_timeout: calls a function with a timeout in seconds; see the
      function of that name.
  """

  wait_for_stop: Callable[[Optional[float]], bool]
  register_stop_handler: Callable[[Callable[[], None]], None]
  coordinator: Any = None
  learner: Any = None
  replay: Any = None
  inference: Any = None
  attempt: int = 0
  alive: Callable[[], None] = lambda: None
  saved: Callable[[], None] = lambda: None
  clock: Callable[[], float] = time.monotonic
  call_with_timeout: Callable[[Callable[[], Any], float], Any] = (
    call_with_timeout
  )
