"""The surroundings of a node, however its process was started.

Nodes do not know Launchpad, or any other engine. They know when to stop and
have clients of the nodes they talk to. A client has plain methods, listed
here. Between processes it is a Courier client, and in a test it can be the node
itself.
"""

import contextlib
import dataclasses
import threading
import time
from typing import (
  Any,
  Callable,
  Dict,
  List,
  Mapping,
  Optional,
  Protocol,
  Sequence,
  Tuple,
  TypeVar,
)

from bt_acme.runtime import evaluation_schedule

_T = TypeVar('_T')


class CoordinatorClient(Protocol):
  """What nodes ask of the coordinator; see `coordinator.Coordinator`."""

  def increment(self, **counts: int) -> Dict[str, int]: ...
  def get_counts(self) -> Dict[str, int]: ...
  def poll(self) -> Tuple[int, Dict[str, int]]: ...
  def poll_to_save(
    self, status: Mapping[str, float]
  ) -> Tuple[int, Dict[str, int], int]: ...
  def resume(
    self, counts: Mapping[str, int], actor_rows: Optional[int] = None
  ) -> None: ...
  def lease(
    self, actor: int, attempt: int, actor_steps: int
  ) -> Optional[int]: ...
  def report_acting(
    self,
    actor: int,
    attempt: int,
    actor_steps: int,
    rows: List[Dict[str, float]],
  ) -> None: ...
  def report_evaluation(
    self, actor_steps: int, rows: List[Dict[str, float]]
  ) -> None: ...
  def evaluations_are_logged(self) -> bool: ...
  def learner_ended(self, finished: bool) -> None: ...
  def evaluator_done(self, evaluator: int) -> None: ...


class LearnerClient(Protocol):
  """What nodes ask of the learner; see `learner_node.LearnerNode`."""

  def get_variables(self, names: Sequence[str]) -> List[Any]: ...
  def get_statistics(
    self, first_environment: int, num_environments: int
  ) -> Any: ...
  def put_statistics(self, first_environment: int, statistics: Any) -> None: ...
  def next_evaluation(
    self, evaluator: int
  ) -> Optional[evaluation_schedule.Evaluation]: ...
  def evaluation_done(self, point: int) -> None: ...
  def get_max_priority(self) -> float: ...


def call_with_timeout(
  function: Callable[[], _T], seconds: float
) -> Optional[_T]:
  """Calls a function that may never return, as one that asks a failed node.

  Returns:
    The result; None if there is none in time, or the function raised an error.
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
  """The surroundings of one node.

  Attributes:
    wait_for_stop: waits until the program is told to stop, at most for this
      many seconds (None: for ever); returns whether it was. It may be called
      from the node's own thread only.
    register_stop_handler: has a function called once, from another thread or a
      signal handler, when the program is told to stop.
    coordinator: a client of the coordinator.
    learner: a client of the learner.
    replay: a `reverb.Client` of the replay server.
    inference: a client of the inference server
      (`inference_node.InferenceNode`); None if every actor chooses its own
      actions.
    attempt: the number of times that the node was started before.
    alive: sends a heartbeat. A node calls it whenever it makes progress, for
      the first time once slow compilation is done.
    saved: reports that the node has nothing left to save. It may then be killed
      if it is slow to exit.
    clock: returns seconds, as `time.monotonic` does.
    call_with_timeout: calls a function and returns its result, or None if there
      is none within this many seconds.
  """

  wait_for_stop: Callable[[Optional[float]], bool]
  register_stop_handler: Callable[[Callable[[], None]], None]
  coordinator: Optional[CoordinatorClient] = None
  learner: Optional[LearnerClient] = None
  replay: Any = None
  inference: Any = None
  attempt: int = 0
  alive: Callable[[], None] = lambda: None
  saved: Callable[[], None] = lambda: None
  clock: Callable[[], float] = time.monotonic
  call_with_timeout: Callable[[Callable[[], Any], float], Any] = (
    call_with_timeout
  )
