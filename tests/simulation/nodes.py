"""Nodes of a simulated run: the real nodes with a fake agent.

The coordinator, the learner node, the actor node and the evaluator node are
real. The agent does not learn: its parameters are its number of learner steps,
its episodes have a fixed length, and its replay is a number.
"""

import contextlib
import functools
import json
import pathlib
import types
from typing import Any, Dict, Iterator, List, Mapping, Optional
from unittest import mock

import jax
import numpy as np
from acme.utils import counting

from bt_acme import config as config_lib
from bt_acme import files
from bt_acme.acting import flight_priorities, statistics_store
from bt_acme.config import run as run_config
from bt_acme.runtime import (
  actor_node,
  checkpoints,
  coordinator,
  evaluator_node,
  heartbeats,
  learner_node,
  metrics,
  node_state,
  provenance,
  replay_checkpoints,
  saver,
  supervisor,
)
from bt_acme.runtime import node as node_lib
from tests.simulation import engine as engine_lib

EPISODE_STEPS = 12
REPORT_PERIOD = 4
_REPLAY_ENDS_SECONDS = 9.0
_REPORT_SECONDS = 5.0
# Longer than in production, which reduces the work to simulate.
_POLL_SECONDS = 2.0
HEARTBEAT_SECONDS = 3.0
# Shorter than in production: the time after which a restart no longer counts.
HOUR = 300.0
_LEARNER_STEPS = 2  # Per iteration.
# The number of recent episodes in the store of the learner.
SCORED_EPISODES = 512


class Event:
  """`threading.Event` of a simulated node."""

  clock: Any = None

  def __init__(self) -> None:
    self._is_set = False
    self._deadline: Optional[float] = None

  def set(self) -> None:
    self._is_set = True

  def is_set(self) -> bool:
    return self._is_set

  def wait(self, timeout: Optional[float] = None) -> bool:
    """Returns after `set` or the timeout; until then, blocks the iteration."""
    if self._is_set:
      return True
    if timeout is not None:
      if self._deadline is None:
        self._deadline = self.clock.now + timeout
      if self.clock.now >= self._deadline:
        return False
    raise engine_lib.Blocked(is_forever=False)


class Agent:
  """Fake of the parts of an agent that nodes use."""

  intrinsic = object()
  learns_priorities = True
  behaviors = (None,)
  flight_weights = (1.0,)

  def __init__(self) -> None:
    self.config = config_lib.R2D2Config()
    self.transfer = config_lib.TransferConfig(
      flight_priorities='learned',
      priority_signal='return',
      priority_window=SCORED_EPISODES,
    )


AGENT = Agent()


class Learner:
  """Learner that counts its steps; their number is its parameters.

  Its store of the scores of flights is real.
  """

  max_priority = 1.0
  template = {'steps': jax.ShapeDtypeStruct((2,), np.int64)}

  def __init__(
    self,
    context: node_lib.Context,
    logger: metrics.MetricsLogger,
    on_step: Any,
  ):
    self._replay = context.replay
    self._counter = counting.Counter(
      context.coordinator, time_delta=_REPORT_SECONDS
    )
    self._logger = logger
    self._on_step = on_step
    self.scores = flight_priorities.ScoreStore(AGENT)  # type: ignore[arg-type]
    self.statistics = statistics_store.StatisticsStore()  # Stays empty.
    self.learner_steps = 0
    self.replay_size = 0

  @property
  def variables(self) -> Dict[str, np.ndarray]:
    return {'steps': np.full((2,), self.learner_steps, np.int64)}

  def advance(self, seconds: float) -> bool:
    self.replay_size = self._replay.sample()
    if not self.replay_size:
      return False
    for _ in range(_LEARNER_STEPS):
      self.learner_steps += 1
      counts = self._counter.increment(learner_steps=1)
    row = {'learner_steps': self.learner_steps, 'replay': self.replay_size}
    self._logger.write({**counts, **row})
    self._on_step(self.learner_steps)
    return True

  def flush(self) -> None:
    pass

  def get_variables(self, names: Any) -> List[Any]:
    return [self.variables for _ in names]

  def save(self) -> Dict[str, Any]:
    values = {
      'learner_steps': self.learner_steps,
      'flight_scores': self.scores.save(),
    }
    return {'arrays': self.variables, 'values': values}

  def restore(self, state: Mapping[str, Any]) -> None:
    self.learner_steps = int(state['arrays']['steps'][0])
    assert state['values']['learner_steps'] == self.learner_steps
    self.scores.restore(state['values']['flight_scores'])


def export(
  folder: str, *, variables: Any, actor_steps: int, **others: Any
) -> None:
  """Fake of `behaviors.export`."""
  del others
  with files.new_folder(folder) as path:
    text = json.dumps([int(variables['steps'][0]), actor_steps])
    (path / 'card.json').write_text(text)
    (path / 'params.json').write_text(text)


class Replay:
  """Replay server that only counts its sequences."""

  is_warm = True

  def __init__(self, run: run_config.RunConfig):
    self._run = run
    self.size = 0
    self._number = 0
    self._end = Event()

  def start(self) -> None:
    if not self._run.checkpoint_replay:
      return
    folder = replay_checkpoints.scratch(self._run)
    folder.mkdir(parents=True, exist_ok=True)
    replay_checkpoints.clear(self._run)
    newest = checkpoints.newest_replay(self._run.checkpoint_folder)
    if newest is not None:
      self.size = int((newest.folder / 'size').read_text())

  def insert(self, number: int) -> None:
    self.size += number

  def sample(self) -> int:
    return self.size

  def checkpoint(self) -> str:
    self._number += 1
    folder = replay_checkpoints.scratch(self._run) / str(self._number)
    folder.mkdir(parents=True)
    (folder / 'size').write_text(str(self.size))
    (folder / 'DONE').write_text('')
    return str(folder)

  def iterate(self) -> float:
    return 1.0

  def stop(self) -> None:
    if self._run.checkpoint_replay:
      replay_checkpoints.wait_until_unused(self._run, _REPLAY_ENDS_SECONDS)

  def close(self) -> None:
    pass


class Inference:
  """Inference server without a policy."""

  is_warm = False

  def __init__(self, context: node_lib.Context):
    self._context = context

  def start(self) -> None:
    assert self._context.learner is not None
    self._context.learner.get_variables(['policy'])

  def act(self) -> None:
    self.is_warm = True

  def iterate(self) -> float:
    return 0.5

  def stop(self) -> None:
    pass

  def close(self) -> None:
    pass


class Group:
  """Fake environments and their actor; episodes have a fixed length.

  The score of an episode is its unique number plus 1.
  """

  def __init__(self, index: int, number: int, context: Any, numbers: Any):
    self.first_environment = index * number
    self.environments = types.SimpleNamespace(close=lambda: None)
    priorities = flight_priorities.FlightPriorities(
      AGENT,  # type: ignore[arg-type]
      context.learner.exchange_scores([]),
    )
    self.actor = types.SimpleNamespace(intrinsic=None, priorities=priorities)
    self._context = context
    self._numbers = numbers  # Unique numbers for episodes.
    self._taken = [0] * number

  def request(self) -> None:
    if self._context.inference is not None:
      self._context.inference.act()

  def act(self) -> int:
    for i in range(len(self._taken)):
      self._taken[i] += 1
    return len(self._taken)

  def observe(self) -> List[Dict[str, float]]:
    rows = []
    for i, taken in enumerate(self._taken):
      if taken >= EPISODE_STEPS:
        self._taken[i] = 0
        episode = next(self._numbers)
        scored: Any = types.SimpleNamespace(
          flown=[0], scores={'return': episode + 1}
        )
        self.actor.priorities.add(scored)
        rows.append(
          {
            'episode_return': 1.0,
            'environment': self.first_environment + i,
            'episode': episode,
          }
        )
    if rows:
      self._context.replay.insert(len(rows))
    return rows


class Actor(actor_node.ActorNode):
  """The actor node with fake environments."""

  numbers: Iterator[int]

  def _make_groups(self) -> List[Any]:
    assert self._context.learner is not None
    self._context.learner.get_statistics(0, 1)
    number = self._run.envs_per_actor
    return [Group(self._index, number, self._context, self.numbers)]


class Evaluator:
  """Evaluator whose episodes record the learner steps of their policy."""

  def __init__(self, episodes: int):
    self._episodes = episodes

  def run(
    self, variables: Any, statistics: Any, should_stop: Any
  ) -> List[Dict[str, float]]:
    del statistics
    if should_stop():
      return []
    learned = int(variables['steps'][0])
    return [
      {'episode_return': 1.0, 'episode': i, 'learned': learned}
      for i in range(self._episodes)
    ]

  def close(self) -> None:
    pass


class EvaluatorNode(evaluator_node.EvaluatorNode):
  """The evaluator node with fake environments."""

  def _make_evaluator(self) -> Any:
    return Evaluator(self._run.evaluation_episodes)


class _Address:
  def bind(self, address: Any) -> None:
    pass


class ProgramNode:
  """Fake of a Launchpad node."""

  launch_type = launch_context = None

  def __init__(self, make: Any, num_ports: int):
    self._make = make
    self.addresses = [_Address() for _ in range(num_ports)]

  def _initialize_context(self, launch_type: Any, launch_config: Any) -> None:
    pass

  def to_executables(self, nodes: Any, label: str, context: Any) -> List[Any]:
    return [node._make for node in nodes]


def make_program(run: run_config.RunConfig, simulation: Any) -> Any:
  """Makes a program of simulated nodes, like `program.make_program`."""
  groups: Dict[str, List[ProgramNode]] = {}

  def add(label: str, make: Any, *clients: str, ports: int = 0) -> None:
    def make_node(process: Any, engine: Any) -> Any:
      return make(_context(run, process, engine, clients, simulation))

    groups.setdefault(label, []).append(ProgramNode(make_node, ports))

  add('replay', lambda context: Replay(run), ports=1)
  add(
    'coordinator',
    functools.partial(coordinator.Coordinator, run, lambda budget: mock.Mock()),
    ports=1,
  )
  add(
    'learner',
    functools.partial(
      learner_node.LearnerNode,
      run,
      AGENT,
      functools.partial(_make_learner, simulation),
    ),
    *('coordinator', 'replay'),
    ports=1,
  )
  clients = ['coordinator', 'learner', 'replay']
  if run.inference == 'server':
    add('inference', Inference, 'learner', ports=1)
    clients.append('inference')
  for index in range(run.num_actors):
    add('actor', functools.partial(Actor, run, AGENT, index, None), *clients)
  for index in range(run.num_evaluators):
    add(
      'evaluator',
      functools.partial(EvaluatorNode, run, AGENT, index),
      *('coordinator', 'learner'),
    )
  return types.SimpleNamespace(groups=groups)


def _context(
  run: Any, process: Any, engine: Any, clients: Any, simulation: Any
) -> Any:
  """Returns the context of a node in a process."""

  def wait_for_stop(seconds: Optional[float]) -> bool:
    return bool(process.is_told_to_stop)

  def call_with_timeout(function: Any, seconds: float) -> Any:
    try:
      return function()
    except (engine_lib.Blocked, Exception):
      return None

  process.servers = [f'{name}/0' for name in clients]
  return node_lib.Context(
    wait_for_stop,
    lambda handler: None,
    attempt=process.attempt,
    alive=lambda: engine.heartbeat(process),
    saved=lambda: engine.report_saved(process),
    clock=simulation.clock.monotonic,
    call_with_timeout=call_with_timeout,
    **{
      name: engine_lib.Client(engine, process, f'{name}/0') for name in clients
    },
  )


def _make_learner(
  simulation: Any,
  run: run_config.RunConfig,
  context: node_lib.Context,
  logger: metrics.MetricsLogger,
  stack: contextlib.ExitStack,
) -> Any:
  """Makes a learner and its saver, like `reverb_learner.make`."""
  process = simulation.machines.disk.process
  if run.checkpoint_replay:
    # When the process ends, the kernel closes the file and releases its lock.
    lock = stack.enter_context(contextlib.ExitStack())
    lock.enter_context(replay_checkpoints.in_use(run))
    process.open_files.callback(lock.close)
  learner = Learner(
    context, logger, lambda steps: simulation.on_learner_step(process, steps)
  )
  return learner, saver.Saver(
    run.checkpoint_folder,
    functools.partial(
      replay_checkpoints.take, run, AGENT.config.replay, context.replay
    ),
    functools.partial(replay_checkpoints.clear, run),
    start=lambda work: simulation.machines.engine.start_task(process, work),
    clock=simulation.clock.monotonic,
  )


class _NoSummaries:
  def __init__(self, folder: pathlib.Path, **arguments: Any):
    pass

  def write(self, step: Any, row: Any) -> None:
    pass

  def close(self) -> None:
    pass


@contextlib.contextmanager
def installed(simulation: Any) -> Iterator[None]:
  """Gives the nodes virtual time, and replaces their slow parts."""
  clock = simulation.clock

  def sleep(seconds: float) -> None:
    raise engine_lib.Blocked(is_forever=False)

  Event.clock = clock
  times = types.SimpleNamespace(
    time=clock.time, monotonic=clock.monotonic, sleep=sleep
  )
  # There is only one thread, so a lock does nothing.
  threads = types.SimpleNamespace(Event=Event, Lock=contextlib.nullcontext)
  Actor.numbers = simulation.episode_numbers
  with contextlib.ExitStack() as stack:
    for module, name, value in (
      (metrics, 'time', times),
      (provenance, 'time', times),
      (replay_checkpoints, 'time', times),
      (counting, 'time', times),
      (coordinator, 'threading', threads),
      (learner_node, 'threading', threads),
      (learner_node.behaviors, 'export', export),
      (actor_node, '_REPORT_PERIOD', REPORT_PERIOD),
      (coordinator, '_POLL_SECONDS', _POLL_SECONDS),
      (evaluator_node, '_POLL_SECONDS', _POLL_SECONDS),
      (learner_node, '_POLL_SECONDS', _POLL_SECONDS),
      (node_state, '_HOUR', HOUR),
      (supervisor, '_LOOK_SECONDS', HEARTBEAT_SECONDS),
      (heartbeats, 'PERIOD', HEARTBEAT_SECONDS),
      (supervisor, '_SECONDS_AFTER_SERVERS', 4 * HEARTBEAT_SECONDS),
      (provenance, '_versions', dict),
      (provenance, '_code', dict),
      (learner_node, '_REPORT_SECONDS', _REPORT_SECONDS),
      (metrics.summaries_lib, 'Summaries', _NoSummaries),
    ):
      stack.enter_context(mock.patch.object(module, name, value))
    yield
