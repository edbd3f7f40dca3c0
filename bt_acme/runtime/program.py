r"""The Launchpad program: what runs where.

  actors --transitions--> replay --batches--> learner --parameters--> actors
     \                                          |  \--> evaluators
      \--steps, episodes--> coordinator <-------/         |
                                 ^------------------------/

The coordinator hands out the budget in leases, beyond which each actor goes by
less than one turn of its environments, keeps the counts and the logs, and
prints progress. The run is over when it returns: learner and evaluators have
then said that they are done.

With `inference=server` one process more, on the learner's accelerator, chooses
the actions of all actors (`inference.InferenceServer`).
"""

import dataclasses
import functools
import os
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

import jax
import launchpad as lp
import numpy as np
from acme.utils import counting

from bt_acme import assembly, behaviors, environments, evaluation
from bt_acme import config as config_lib
from bt_acme.acting import policy as policy_lib
from bt_acme.acting import vector_actor
from bt_acme.agents import builders as builders_lib
from bt_acme.agents import variables as variables_lib
from bt_acme.config import run as run_config
from bt_acme.core import epsilon
from bt_acme.environments import vector
from bt_acme.replay import writer as writer_lib
from bt_acme.runtime import checkpoints
from bt_acme.runtime import metrics as metrics_lib

COORDINATOR = 'coordinator'
_POLL_SECONDS = 0.5
_RECENT = 100  # Episodes whose mean return the progress line shows.
_LEASE_TURNS = 32  # Turns of an actor between two reports.
_SPARE_THREADS = 4  # Of the inference server, for calls that are no requests.
_LEARNER_ENDS_SECONDS = 8.0  # That it is given to save when told to stop.
_EVALUATOR_SEED = 1_000_000  # Index of the first evaluator's environments.

# Phases of a run, in order.
_STARTING, _RUNNING, _LEARNER_FINISHES, _EVALUATORS_FINISH, _DONE = range(5)


# All but the learner stay off the accelerator, and each actor on one core.
_CPU = {'JAX_PLATFORMS': 'cpu'}
_ONE_CORE = {
  **_CPU,
  'XLA_FLAGS': ' '.join(
    [
      os.environ.get('XLA_FLAGS', ''),
      '--xla_cpu_multi_thread_eigen=false',
      'intra_op_parallelism_threads=1',
    ]
  ),
  'OMP_NUM_THREADS': '1',
}
# glibc then asks for huge pages. XLA gives the memory of a step back behind it,
# and a learner on a CPU spends a fifth of its time on getting it anew by 4 kB.
_HUGE_PAGES = {
  'GLIBC_TUNABLES': ':'.join(
    filter(None, [os.environ.get('GLIBC_TUNABLES'), 'glibc.malloc.hugetlb=1'])
  )
}
# Or JAX reports each kind of device that is not there.
_ACCELERATOR = {'JAX_LOGGING_LEVEL': 'WARNING'}
PROCESS_ENVIRONMENTS = {
  'learner': {**_ACCELERATOR, **_HUGE_PAGES},
  # JAX would give all of a GPU's memory to the process that comes first.
  'inference': {**_ACCELERATOR, 'XLA_PYTHON_CLIENT_MEM_FRACTION': '.2'},
  'replay': _CPU,
  COORDINATOR: _CPU,
  'actor': _ONE_CORE,
  'evaluator': _ONE_CORE,
}


class Coordinator:
  """Counts, budget, logs and progress of a run."""

  def __init__(self, run: run_config.RunConfig):
    self._run = run
    self._lock = threading.Lock()
    self._phase = _STARTING
    self._leased = 0
    self._counts = counting.Counter()
    self._evaluations_done = 0
    self._learner_ended = threading.Event()
    self._status: Dict[str, float] = {}
    self._returns: List[float] = []
    self._logs: Dict[str, Any] = {}

  # What the others call.

  def increment(self, **counts: int) -> Dict[str, int]:
    """Adds to counts, as `acme.utils.counting.Counter` does."""
    result: Dict[str, int] = self._counts.increment(**counts)
    return result

  def get_counts(self) -> Dict[str, int]:
    """All counts."""
    result: Dict[str, int] = self._counts.get_counts()
    return result

  def poll(
    self, status: Optional[Mapping[str, float]] = None
  ) -> Tuple[int, Dict[str, int]]:
    """Where the run is, and all counts.

    Args:
      status: what the caller adds to the progress line.
    """
    self._status.update(status or {})
    return self._phase, self.get_counts()

  def start(self, counts: Mapping[str, int]) -> None:
    """The learner is ready, with counts that a checkpoint held."""
    with self._lock:
      self._counts.increment(**counts)
      self._leased = counts.get('actor_steps', 0)
      self._phase = max(self._phase, _RUNNING)

  def lease(self, actor_steps: int) -> int:
    """Grants steps of the budget; 0 when it is used up."""
    with self._lock:
      left = max(0, self._run.max_actor_steps - self._leased)
      granted = min(actor_steps, left)
      self._leased += granted
      return granted

  def report_episodes(
    self,
    label: str,
    rows: List[Dict[str, float]],
    actor_steps: Optional[int] = None,
  ) -> None:
    """Logs finished episodes of an actor or evaluator.

    Args:
      label: `actor` or `evaluator`.
      rows: one an episode.
      actor_steps: that the parameters had seen; now, if left out.
    """
    counts = self.get_counts()
    if actor_steps is not None:
      counts['actor_steps'] = actor_steps
    returns = [row['episode_return'] for row in rows]
    with self._lock:
      for row in rows:
        self._log(label, {**counts, **row})
      if label == 'actor':
        self._returns = (self._returns + returns)[-_RECENT:]
      elif returns:
        self._status['evaluator_return'] = float(np.mean(returns))

  def learner_ended(self, finished: bool) -> None:
    """The learner asks nothing any more.

    Args:
      finished: whether it has saved and exported what the whole run came to.
    """
    with self._lock:
      if finished:
        self._phase = max(self._phase, _EVALUATORS_FINISH)
    self._learner_ended.set()

  def evaluator_done(self) -> None:
    """One evaluator has evaluated what the learner ended with."""
    with self._lock:
      self._evaluations_done += 1

  # The coordinator's own loop.

  def run(self) -> None:
    """Returns when the run is over."""
    progress = metrics_lib.Progress(self._run.max_actor_steps)
    while self._phase != _DONE and not lp.wait_for_stop(_POLL_SECONDS):
      self._advance()
      # Before that the counts of a resumed run are not there.
      if self._phase != _STARTING:
        progress.update(self._progress())
    with self._lock:
      progress.update(self._progress())
      progress.close()
      for logger in self._logs.values():
        logger.close()
    if self._phase != _DONE:
      # Told to stop, as the learner is, whose calls would wait for an answer
      # instead of letting it save.
      self._learner_ended.wait(_LEARNER_ENDS_SECONDS)

  def _advance(self) -> None:
    steps = self.get_counts().get('actor_steps', 0)
    if self._phase == _RUNNING and steps >= self._run.max_actor_steps:
      self._phase = _LEARNER_FINISHES
    if (
      self._phase == _EVALUATORS_FINISH
      and self._evaluations_done >= self._run.num_evaluators
    ):
      self._phase = _DONE

  def _progress(self) -> Dict[str, float]:
    progress = {**self.get_counts(), **self._status}
    if self._returns:
      progress['episode_return'] = float(np.mean(self._returns))
    return progress

  def _log(self, label: str, row: Dict[str, float]) -> None:
    if label not in self._logs:
      self._logs[label] = metrics_lib.make_logger(self._run.workdir, label)
    self._logs[label].write(row)


@dataclasses.dataclass
class LearnerNode:
  """Runs the learner until the budget is used up, and answers actors."""

  run_config: run_config.RunConfig
  builder: builders_lib.AgentBuilder
  replay: Any  # reverb.Client
  coordinator: Any  # courier.Client of Coordinator
  initial_params: Any = None

  def __post_init__(self) -> None:
    self._ready = threading.Event()
    self._learner: Any = None

  def get_variables(self, names: List[str]) -> List[Any]:
    """The learner's variables, once it has been restored."""
    self._ready.wait()
    variables: List[Any] = self._learner.get_variables(names)
    return variables

  def get_statistics(
    self, first_environment: int, num_environments: int
  ) -> Any:
    """Statistics of the intrinsic reward that an actor goes on from."""
    self._ready.wait()
    return self._learner.get_statistics(first_environment, num_environments)

  def put_statistics(self, first_environment: int, statistics: Any) -> None:
    """Takes those of an actor's environments."""
    self._ready.wait()
    self._learner.put_statistics(first_environment, statistics)

  def get_merged_statistics(self) -> Any:
    """Those of all actors as one, for evaluators."""
    self._ready.wait()
    return self._learner.merged_statistics()

  def get_max_priority(self) -> float:
    """With which new sequences enter the replay."""
    self._ready.wait()
    return float(self._learner.max_priority)

  def run(self) -> None:
    """Learns; saves at intervals, at the end, and when told to stop."""
    run = self.run_config
    dataset = self.builder.make_dataset_iterator(self.replay)
    counter = counting.Counter(self.coordinator, time_delta=1.0)
    logger = metrics_lib.make_logger(run.workdir, 'learner', time_delta=1.0)
    learner = self.builder.make_learner(
      jax.random.key(run.seed),
      None,
      dataset,
      self.replay,
      counter,
      logger=logger,
      initial_params=self.initial_params,
    )
    restored = checkpoints.restore(run.checkpoint_folder, learner.template)
    counts: Dict[str, int] = {}
    if restored is not None:
      arrays, values = restored
      learner.restore({'arrays': arrays, 'values': values['learner']})
      counts = values['counts']
    self._learner = learner
    self.coordinator.start(counts)
    self._ready.set()
    finished = False
    try:
      finished = self._learn(learner, dataset, counts)
    finally:
      self.coordinator.learner_ended(finished)
      dataset.stop()
      logger.close()
    lp.wait_for_stop()  # Evaluators still fetch what it ended with.

  def _learn(self, learner: Any, dataset: Any, counts: Dict[str, int]) -> bool:
    """Learns and saves; whether to the end of the budget."""
    saved = time.monotonic()
    while not lp.wait_for_stop(0):
      phase, counts = self.coordinator.poll(
        {'replay_size': learner.replay_size}
      )
      if phase >= _LEARNER_FINISHES:
        learner.flush()
        break
      try:
        self._take_steps(learner, dataset)
      except RuntimeError:
        # The replay may be told to stop before the learner is.
        if lp.wait_for_stop(1.0):
          break
        raise
      if time.monotonic() - saved > self.run_config.checkpoint_period:
        self._save(learner, counts)
        saved = time.monotonic()
    self._save(learner, counts)
    if lp.wait_for_stop(0):
      return False
    if isinstance(self.builder.agent.config, config_lib.NGUConfig):
      behaviors.export(
        self.run_config.behavior_folder,
        agent=self.builder.agent,
        variables=learner.variables,
        statistics=learner.merged_statistics(),
        actor_steps=counts['actor_steps'],
      )
    return True

  def _take_steps(self, learner: Any, dataset: Any) -> None:
    """Learns for as long as no one need ask whether the run is over."""
    deadline = time.monotonic() + _POLL_SECONDS
    while time.monotonic() < deadline and not lp.wait_for_stop(0):
      if dataset.ready(_POLL_SECONDS / 2):
        learner.step()

  def _save(self, learner: Any, counts: Dict[str, int]) -> None:
    state = learner.save()
    checkpoints.save(
      self.run_config.checkpoint_folder,
      state['arrays'],
      {
        'learner': state['values'],
        'counts': {**counts, 'learner_steps': learner.learner_steps},
      },
    )


def _stop(writers: List[writer_lib.ReverbWriter]) -> None:
  for writer in writers:
    writer.stop()


@dataclasses.dataclass
class InferenceNode:
  """Chooses for all actors, until told to stop."""

  run_config: run_config.RunConfig
  builder: builders_lib.AgentBuilder
  learner: Any

  def __post_init__(self) -> None:
    self._ready = threading.Event()
    self._server: Any = None

  def act(self, *request: Any) -> Any:
    """As `inference.InferenceServer.act`, once that is there."""
    self._ready.wait()
    return self._server.act(*request)

  def restore_statistics(self, *request: Any) -> None:
    """As `inference.InferenceServer.restore_statistics`, likewise."""
    self._ready.wait()
    self._server.restore_statistics(*request)

  def run(self) -> None:
    """Answers, and fetches parameters every so many turns of the actors."""
    run, agent = self.run_config, self.builder.agent
    server = policy_lib.InferenceServer(
      agent,
      epsilons=_epsilons(run, agent),
      seed=run.seed,
      group_size=run.group_size,
      # An accelerator; a CPU would keep emulators waiting.
      rewards=jax.default_backend() != 'cpu',
    )
    server.update_variables(variables_lib.fetch(self.learner))
    self._server = server
    self._ready.set()
    period = agent.config.acting.variable_update_period
    due = period * run.num_groups
    answered = 0
    try:
      while not lp.wait_for_stop(0):
        answered += server.serve(_POLL_SECONDS)
        if answered >= due:
          server.update_variables(variables_lib.fetch(self.learner))
          answered = 0
    finally:
      server.stop()


def _epsilons(run: run_config.RunConfig, agent: assembly.Agent) -> np.ndarray:
  """Of all environments of the run."""
  return epsilon.ladder(
    run.num_environments,
    base=agent.config.acting.epsilon_base,
    alpha=agent.config.acting.epsilon_alpha,
  )


@dataclasses.dataclass
class _Group:
  """Environments that step together, and what acts in them."""

  first: int  # Environment of the run.
  environment: vector.Environments
  actor: vector_actor.VectorActor
  step: vector.VectorStep

  def act(self) -> int:
    """Begins a step with the actions asked for; how many are of episodes."""
    self.environment.send(self.actor.receive_actions())
    self.actor.digest()
    return int(len(self.step.is_last) - self.step.is_last.sum())

  def observe(self) -> List[Dict[str, float]]:
    """Ends the step; metrics of ended episodes."""
    self.step = self.environment.recv()
    return self.actor.observe(self.step)


@dataclasses.dataclass
class ActorNode:
  """Steps its environments until the budget is used up.

  With an inference server they come in two groups, of which one emulates while
  the other waits for its actions.
  """

  run_config: run_config.RunConfig
  builder: builders_lib.AgentBuilder
  replay: Any
  learner: Any
  coordinator: Any
  index: int
  inference: Any = None  # courier.Client of InferenceNode

  def run(self) -> None:
    """Acts."""
    run = self.run_config
    pairs = [
      self.builder.make_sink(self.replay, self.learner.get_max_priority)
      for _ in range(run.envs_per_actor)
    ]
    sinks = [sink for sink, _ in pairs]
    writers = [writer for _, writer in pairs]
    # A writer waits for the learner, for ever once that is told to stop.
    lp.register_stop_handler(functools.partial(_stop, writers))
    clients, groups = [], []
    for i in range(run.groups_per_actor):
      start = i * run.group_size
      group, client = self._make_group(
        self.index * run.groups_per_actor + i,
        sinks[start : start + run.group_size],
      )
      groups.append(group)
      clients += [client] if client else []
    try:
      self._act(groups, clients)
    except ConnectionError:
      # The server of actions may be told to stop before this process is.
      if not (self.inference and lp.wait_for_stop(1.0)):
        raise
    for group in groups:
      group.environment.close()

  def _make_group(self, index: int, sinks: List[Any]) -> Tuple[_Group, Any]:
    """The group of this index in the run, and a client for its parameters."""
    run, agent = self.run_config, self.builder.agent
    first = index * run.group_size
    policy = None
    if self.inference is not None:
      policy = policy_lib.RemotePolicy(
        self.inference, index, agent.spec.frame_channels
      )
    actor = vector_actor.VectorActor(
      agent,
      epsilons=_epsilons(run, agent)[first : first + run.group_size],
      seed=run.seed,
      first_environment=first,
      sinks=sinks,
      statistics=self.learner.get_statistics(first, run.group_size),
      policy=policy,
    )
    client = None
    if policy is None:
      client = variables_lib.VariableClient(
        self.learner, actor, agent.config.acting.variable_update_period
      )
    environment = environments.make_vector(
      run.env,
      run.group_size,
      seed=run.seed,
      first_environment=first,
      num_stacked=run.num_stacked,
    )
    return _Group(first, environment, actor, environment.reset()), client

  def _act(self, groups: List[_Group], clients: List[Any]) -> None:
    """Takes steps as the budget allows, each group in turn."""
    num = self.run_config.envs_per_actor
    left, taken = 0, 0
    episodes: List[Dict[str, float]] = []
    for group in groups:
      group.actor.request_actions(group.step)
    for group in groups[1:]:
      taken += group.act()
    left -= taken
    while not lp.wait_for_stop(0):
      if left <= 0:
        granted = self.coordinator.lease(num * _LEASE_TURNS)
        if not granted:
          for group in groups[1:]:  # Their last step is counted.
            episodes += group.observe()
        self._report(groups, taken, episodes)
        taken, episodes = 0, []
        if not granted:
          break
        left += granted  # The last turn may have gone beyond the lease.
        continue
      # With one group, it is the next one as well.
      for group, following in zip(
        groups, [*groups[1:], groups[0]], strict=True
      ):
        acted = group.act()
        left -= acted
        taken += acted
        episodes += following.observe()
        following.actor.request_actions(following.step)
      for client in clients:
        client.update()

  def _report(
    self,
    groups: List[_Group],
    taken: int,
    episodes: List[Dict[str, float]],
  ) -> None:
    """Before the steps: what follows from the last of them finds all there."""
    for group in groups:
      statistics = group.actor.statistics()
      if statistics is not None:
        self.learner.put_statistics(group.first, statistics)
    if episodes:
      self.coordinator.report_episodes('actor', episodes)
    if taken:
      self.coordinator.increment(actor_steps=taken)


@dataclasses.dataclass
class EvaluatorNode:
  """Evaluates the newest parameters at intervals, and what the learner ends
  with."""

  run_config: run_config.RunConfig
  agent: assembly.Agent
  learner: Any
  coordinator: Any
  index: int

  def run(self) -> None:
    """Evaluates."""
    run = self.run_config
    evaluator = evaluation.Evaluator(
      self.agent,
      episodes=run.evaluation_episodes,
      seed=run.seed,
      first_environment=_EVALUATOR_SEED + self.index * run.evaluation_episodes,
    )
    evaluated: Optional[int] = None  # Actor steps then; a resumed run's first.
    while not lp.wait_for_stop(_POLL_SECONDS):
      phase, counts = self.coordinator.poll()
      steps = counts.get('actor_steps', 0)
      last = phase == _EVALUATORS_FINISH
      if phase == _RUNNING and evaluated is None:
        evaluated = steps
      due = phase == _RUNNING and steps - evaluated >= run.evaluation_period
      if not (last or due):
        continue
      evaluated = steps
      rows = evaluator.run(
        variables_lib.fetch(self.learner),
        self.learner.get_merged_statistics(),
        should_stop=functools.partial(self._should_stop, last),
      )
      self.coordinator.report_episodes('evaluator', rows, steps)
      if last:
        self.coordinator.evaluator_done()
        break

  def _should_stop(self, last: bool) -> bool:
    """Whether an evaluation under way is of no use any more."""
    if lp.wait_for_stop(0):
      return True
    return not last and self.coordinator.poll()[0] >= _LEARNER_FINISHES


def make_program(
  run: run_config.RunConfig,
  builder: builders_lib.AgentBuilder,
  *,
  initial_params: Any = None,
) -> lp.Program:
  """Wires a run up.

  Args:
    run: where, how many, how long.
    builder: of the agent.
    initial_params: of the Q-network, to start from instead of fresh ones.

  Returns:
    A program for `launching.launch`, whose main node is the coordinator.
  """
  program = lp.Program('bt_acme')
  with program.group('replay'):
    replay = program.add_node(
      lp.ReverbNode(functools.partial(builder.make_replay_tables, None))
    )
  with program.group(COORDINATOR):
    coordinator = program.add_node(lp.CourierNode(Coordinator, run))
  with program.group('learner'):
    learner = program.add_node(
      lp.CourierNode(
        LearnerNode, run, builder, replay, coordinator, initial_params
      )
    )
  server = None
  if run.inference == 'server':
    with program.group('inference'):
      server = program.add_node(
        lp.CourierNode(
          InferenceNode,
          run,
          builder,
          learner,
          # Each request waits in a thread of its own.
          courier_kwargs={'thread_pool_size': run.num_groups + _SPARE_THREADS},
        )
      )
  with program.group('actor'):
    for index in range(run.num_actors):
      program.add_node(
        lp.PyClassNode(
          ActorNode, run, builder, replay, learner, coordinator, index, server
        )
      )
  with program.group('evaluator'):
    for index in range(run.num_evaluators):
      program.add_node(
        lp.PyClassNode(
          EvaluatorNode, run, builder.agent, learner, coordinator, index
        )
      )
  return program
