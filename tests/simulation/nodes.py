"""Nodes of a simulated run: the real nodes with a fake agent.

The coordinator, the learner node, the actor node and the evaluator node are
real. The agent does not learn: its parameters are its number of learner steps,
its episodes have a fixed length, and its replay is a number.
"""

import contextlib
import functools
import json
import types
from unittest import mock

import jax
import numpy as np
from acme.utils import counting

from bt_acme import config as config_lib
from bt_acme import files
from bt_acme.acting import behavior_scores, statistics_store
from bt_acme.runtime import (
  actor_node,
  checkpoints,
  coordinator,
  evaluator_node,
  heartbeats,
  learner_node,
  metrics_logger,
  provenance,
  replay_checkpoints,
  saver,
  supervised_nodes,
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

  clock = None
  _is_set = False
  _deadline = None

  def set(self):
    self._is_set = True

  def is_set(self):
    return self._is_set

  def wait(self, timeout=None):
    """Returns after `set` or the timeout; until then, blocks the iteration."""
    if self._is_set:
      return True
    if timeout is not None:
      if self._deadline is None:
        self._deadline = self.clock.now + timeout
      if self.clock.now >= self._deadline:
        return False
    raise engine_lib.NotYet


AGENT = types.SimpleNamespace(
  intrinsic=object(),
  learns_priorities=True,
  behaviors=(None,),
  flight_weights=(1.0,),
  config=config_lib.R2D2Config(),
  transfer=config_lib.TransferConfig(
    flight_priorities='learned',
    priority_signal='return',
    priority_window=SCORED_EPISODES,
  ),
)


class Nothing:
  """An object whose methods do nothing."""

  def __init__(self, *args, **named):
    pass

  def __getattr__(self, name):
    return lambda *args, **named: None


class Learner:
  """Learner that counts its steps; their number is its parameters.

  Its store of the scores of flights is real.
  """

  learner_steps = replay_size = 0
  template = {'steps': jax.ShapeDtypeStruct((2,), np.int64)}

  def __init__(self, context, logger, on_step):
    self._replay = context.replay
    self._counter = counting.Counter(
      context.coordinator, time_delta=_REPORT_SECONDS
    )
    self._logger = logger
    self._on_step = on_step
    self.scores = behavior_scores.ScoreStore(AGENT)
    self.statistics = statistics_store.StatisticsStore()  # Stays empty.

  @property
  def variables(self):
    return {'steps': np.full((2,), self.learner_steps, np.int64)}

  def advance(self, seconds):
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

  def flush(self):
    pass

  def get_variables(self, names):
    return [self.variables for _ in names]

  def save(self):
    values = {
      'learner_steps': self.learner_steps,
      'flight_scores': self.scores.save(),
    }
    return {'arrays': self.variables, 'values': values}

  def restore(self, state):
    self.learner_steps = int(state['arrays']['steps'][0])
    assert state['values']['learner_steps'] == self.learner_steps
    self.scores.restore(state['values']['flight_scores'])


def export(folder, *, variables, actor_steps, **others):
  """Fake of `behaviors.export`."""
  with files.new_folder(folder) as path:
    text = json.dumps([int(variables['steps'][0]), actor_steps])
    (path / 'card.json').write_text(text)
    (path / 'params.json').write_text(text)


class Replay(node_lib.Node):
  """Replay server that only counts its sequences."""

  is_warm = True
  size = 0
  _number = 0

  def start(self):
    if not self._run.checkpoint_replay:
      return
    folder = replay_checkpoints.scratch(self._run)
    folder.mkdir(parents=True, exist_ok=True)
    replay_checkpoints.clear(self._run)
    newest = checkpoints.newest_replay(self._run.checkpoint_folder)
    if newest is not None:
      self.size = int((newest.folder / 'size').read_text())

  def insert(self, number):
    self.size += number

  def sample(self):
    return self.size

  def checkpoint(self):
    self._number += 1
    folder = replay_checkpoints.scratch(self._run) / str(self._number)
    folder.mkdir(parents=True)
    (folder / 'size').write_text(str(self.size))
    (folder / 'DONE').write_text('')
    return str(folder)

  def iterate(self):
    return 1.0

  def stop(self):
    if self._run.checkpoint_replay:
      replay_checkpoints.wait_until_unused(self._run, _REPLAY_ENDS_SECONDS)


class Inference(node_lib.Node):
  """Inference server without a policy."""

  def start(self):
    self._learner.get_variables(['policy'])

  def act(self):
    self.is_warm = True

  def iterate(self):
    return 0.5


class Group:
  """Fake environments and their actor; episodes have a fixed length.

  The score of an episode is its unique number plus 1.
  """

  def __init__(self, index, number, context, numbers):
    self.first_environment = index * number
    self.environments = Nothing()
    priorities = behavior_scores.GroupPriorities(
      AGENT, context.learner.exchange_scores([])
    )
    self.actor = types.SimpleNamespace(intrinsic=None, priorities=priorities)
    self._context = context
    self._numbers = numbers  # Unique numbers for episodes.
    self._taken = [0] * number

  def request(self):
    if self._context.inference is not None:
      self._context.inference.act()

  def act(self):
    for i in range(len(self._taken)):
      self._taken[i] += 1
    return len(self._taken)

  def observe(self):
    rows = []
    for i, taken in enumerate(self._taken):
      if taken >= EPISODE_STEPS:
        self._taken[i] = 0
        episode = next(self._numbers)
        scored = types.SimpleNamespace(
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

  def _make_groups(self):
    self._learner.get_statistics(0, 1)
    number = self._run.envs_per_actor
    return [Group(self._index, number, self._context, self.numbers)]

  def _update_variables(self):
    pass


class EvaluatorNode(evaluator_node.EvaluatorNode):
  """The evaluator node, whose episodes record their policy's learner steps."""

  def _make_evaluator(self, point):
    del point
    return types.SimpleNamespace(run=self._play, close=lambda: None)

  def _play(self, learned, should_stop):
    steps = int(learned.variables['steps'][0])
    # Only long episodes call `should_stop`.
    if steps % 2 and should_stop():
      return []
    return [
      {'episode_return': 1.0, 'episode': i, 'learned': steps}
      for i in range(self._run.evaluation_episodes)
    ]


class ProgramNode:
  """Fake of a Launchpad node."""

  launch_context = types.SimpleNamespace(launch_type=None)

  def __init__(self, make, num_ports):
    self._make = make
    self.addresses = [Nothing() for _ in range(num_ports)]

  def _initialize_context(self, launch_type, launch_config):
    pass

  def to_executables(self, nodes, label, context):
    return [node._make for node in nodes]


def make_program(run, simulation):
  """Makes a program of simulated nodes, like `program.make_program`."""
  groups = {}

  def add(label, make, *clients, ports=0):
    def make_node(process, engine):
      return make(_context(run, process, engine, clients, simulation))

    groups.setdefault(label, []).append(ProgramNode(make_node, ports))

  partial = functools.partial
  add('replay', partial(Replay, run), ports=1)
  add('coordinator', partial(coordinator.Coordinator, run, Nothing), ports=1)
  make_learner = partial(_make_learner, simulation)
  node = partial(learner_node.LearnerNode, run, AGENT, make_learner)
  add('learner', node, 'coordinator', 'replay', ports=1)
  clients = ['coordinator', 'learner', 'replay']
  if run.inference == 'server':
    add('inference', partial(Inference, run), 'learner', ports=1)
    clients.append('inference')
  for index in range(run.num_actors):
    add('actor', partial(Actor, run, AGENT, index, None), *clients)
  for index in range(run.num_evaluators):
    node = partial(EvaluatorNode, run, AGENT, index)
    add('evaluator', node, 'coordinator', 'learner')
  return types.SimpleNamespace(groups=groups)


def _context(run, process, engine, clients, simulation):
  """Returns the context of a node in a process."""

  def wait_for_stop(seconds):
    return bool(process.is_told_to_stop)

  def call_with_timeout(function, seconds):
    try:
      return function()
    except (engine_lib.Blocked, Exception):
      return None

  process.servers = [f'{name}/0' for name in clients]
  return node_lib.Context(
    wait_for_stop,
    lambda handler: None,
    attempt=process.attempt,
    send_heartbeat=lambda: engine.heartbeat(process),
    report_saved=lambda: engine.report_saved(process),
    clock=simulation.clock.monotonic,
    call_with_timeout=call_with_timeout,
    **{
      name: engine_lib.Client(engine, process, f'{name}/0') for name in clients
    },
  )


def _make_learner(simulation, run, context, logger, stack):
  """Makes a learner and its saver, like `reverb_learner.make`."""
  process = simulation.disk.process
  if run.checkpoint_replay:
    # When the process ends, the kernel closes the file and releases its lock.
    lock = stack.enter_context(contextlib.ExitStack())
    lock.enter_context(replay_checkpoints.in_use(run))
    process.open_files.callback(lock.close)
  learner = Learner(context, logger, simulation.on_learner_step)
  return learner, saver.Saver(
    run.checkpoint_folder,
    functools.partial(
      replay_checkpoints.take, run, AGENT.config.replay, context.replay
    ),
    functools.partial(replay_checkpoints.clear, run),
    start=lambda work: simulation.engine.start_task(process, work),
    clock=simulation.clock.monotonic,
  )


@contextlib.contextmanager
def installed(simulation):
  """Gives the nodes virtual time, and replaces their slow parts."""
  clock = simulation.clock

  def sleep(seconds):
    raise engine_lib.NotYet

  Event.clock = clock
  times = types.SimpleNamespace(
    time=clock.time, monotonic=clock.monotonic, sleep=sleep
  )
  # There is only one thread, so a lock does nothing.
  threads = types.SimpleNamespace(Event=Event, Lock=contextlib.nullcontext)
  Actor.numbers = simulation.episode_numbers
  with contextlib.ExitStack() as stack:
    for module, name, value in (
      (metrics_logger, 'time', times),
      (provenance, 'time', times),
      (replay_checkpoints, 'time', times),
      (counting, 'time', times),
      (coordinator, 'threading', threads),
      (learner_node, 'threading', threads),
      (learner_node.behaviors, 'export', export),
      (actor_node, '_REPORT_PERIOD', REPORT_PERIOD),
      (node_lib, 'POLL_SECONDS', _POLL_SECONDS),
      (supervised_nodes, '_HOUR', HOUR),
      (supervisor, '_LOOK_SECONDS', HEARTBEAT_SECONDS),
      (heartbeats, 'PERIOD', HEARTBEAT_SECONDS),
      (supervisor, '_SECONDS_AFTER_SERVERS', 4 * HEARTBEAT_SECONDS),
      (provenance, '_MOST_RECENT', 5),
      (provenance, '_versions', dict),
      (provenance, '_code', dict),
      (learner_node, '_REPORT_SECONDS', _REPORT_SECONDS),
      (metrics_logger.tensorboard_events, 'Summaries', Nothing),
    ):
      stack.enter_context(mock.patch.object(module, name, value))
    yield
