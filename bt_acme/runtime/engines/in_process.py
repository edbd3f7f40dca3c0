"""A run in one process and one thread: reproducible, and without Reverb.

Acting and learning are those of the distributed program, but they take turns:
while the environments take a step, JAX computes the learner steps that
`samples_per_insert` allows. This engine runs wherever the core does.

Between two turns the whole run can be saved. A run that is loaded from there
goes on exactly as the one that was saved would have.
"""

import contextlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from absl import logging

from bt_acme import assembly, environments, files, untrusted
from bt_acme.acting import vector_actor
from bt_acme.core import epsilon
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.environments import saving, vector
from bt_acme.replay import sinks as sinks_lib
from bt_acme.runtime import saved_run
from bt_acme.runtime.engines import in_process_learner

Row = Dict[str, float]


class Result(NamedTuple):
  """The end of a run.

  Attributes:
    variables: the parameters, as NumPy arrays.
    statistics: the statistics of the intrinsic reward, merged over the
      environments; None for an agent without one.
    episodes: metrics of every finished episode, with `actor_steps`.
    learner: metrics of every tenth learner step, with `learner_steps`.
    actor_steps: the number of steps taken.
  """

  variables: assembly.Variables
  statistics: Optional[reward_lib.IntrinsicStatistics]
  episodes: List[Row]
  learner: List[Row]
  actor_steps: int


class Snapshot(NamedTuple):
  """What a run has learned so far.

  Attributes:
    actor_steps: the number of steps taken.
    variables: the parameters, as NumPy arrays.
    statistics: as in `Result`.
  """

  actor_steps: int
  variables: assembly.Variables
  statistics: Optional[reward_lib.IntrinsicStatistics]


def run(
  agent: assembly.Agent,
  *,
  num_environments: int,
  max_actor_steps: int,
  seed: int,
  initial_params: Any = None,
  on_episode: Callable[[Row], None] = lambda row: None,
  snapshot_period: Optional[int] = None,
  on_snapshot: Callable[[Snapshot], None] = lambda snapshot: None,
) -> Result:
  """Trains an agent, from the first step to the last.

  Args:
    agent: R2D2, NGU or BT.
    num_environments: environments that are stepped at once.
    max_actor_steps: the budget, over all environments.
    seed: decides everything; the same seed gives the same run.
    initial_params: parameters of the Q-network to start from, instead of fresh
      ones.
    on_episode: as `InProcessRun.run` takes it.
    snapshot_period: as `InProcessRun.run` takes it.
    on_snapshot: as `InProcessRun.run` takes it.

  Returns:
    What the run ends with.

  Raises:
    ValueError: if the period is not positive.
  """
  whole_run = InProcessRun(
    agent,
    num_environments=num_environments,
    seed=seed,
    initial_params=initial_params,
  )
  with contextlib.closing(whole_run):
    whole_run.run(
      max_actor_steps,
      on_episode=on_episode,
      snapshot_period=snapshot_period,
      on_snapshot=on_snapshot,
    )
    return whole_run.result()


class InProcessRun:
  """A run that can be stopped between two turns, saved, and taken up again.

  Attributes:
    actor_steps: the number of steps taken so far.
    learner_steps: the number of learner steps that have been finished.
    learner_rows: metrics of every tenth of these.
    replay_size: the number of sequences in the replay.
  """

  def __init__(
    self,
    agent: assembly.Agent,
    *,
    num_environments: int,
    seed: int,
    initial_params: Any = None,
  ):
    """Makes all that the run needs; it takes no step.

    Args:
      agent: R2D2, NGU or BT.
      num_environments: environments that are stepped at once.
      seed: decides everything; the same seed gives the same run.
      initial_params: parameters of the Q-network to start from, instead of
        fresh ones. `load` replaces them.
    """
    self._agent = agent
    self._num = num_environments
    self._seed = seed
    self._learner = in_process_learner.Learner(agent, seed, initial_params)
    self._writers = [
      self._learner.replay.writer() for _ in range(num_environments)
    ]
    self._sinks = [
      sinks_lib.make_sink(
        agent.config,
        agent.replay_shapes,
        writer,
        num_actions=agent.spec.num_actions,
        largest_priority=self._learner.largest_priority,
      )
      for writer in self._writers
    ]
    self._identity = saved_run.identity(
      agent, num_environments=num_environments, seed=seed
    )
    self._actor = self._make_actor()
    self._environment = self._make_environment(seed)
    # What the environments show; None before their first reset.
    self._step: Optional[vector.VectorStep] = None
    self._episodes: List[Row] = []
    self._turns = 0
    self._in_turn = False  # It stays if a turn is interrupted.
    self.actor_steps = 0

  def run(
    self,
    max_actor_steps: int,
    *,
    on_episode: Callable[[Row], None] = lambda row: None,
    snapshot_period: Optional[int] = None,
    on_snapshot: Callable[[Snapshot], None] = lambda snapshot: None,
  ) -> None:
    """Goes on until so many steps have been taken since the run began.

    Args:
      max_actor_steps: the number of steps, over all environments.
      on_episode: is called with the metrics of each finished episode, after
        the turn in which it ends. If it raises, the run stops there, and can be
        saved and can go on.
      snapshot_period: the number of actor steps from one snapshot to the next;
        None takes no snapshots.
      on_snapshot: is called with each snapshot, after the first turn at or
        after each multiple of the period. It does not change the run.

    Raises:
      ValueError: if the period is not positive.
      RuntimeError: if a turn was interrupted before.
    """
    if snapshot_period is not None and snapshot_period < 1:
      raise ValueError(f'snapshot_period={snapshot_period} must be positive.')
    while self.actor_steps < max_actor_steps:
      steps_before = self.actor_steps
      for row in self.turn():
        on_episode(row)
      if snapshot_period and (
        self.actor_steps // snapshot_period > steps_before // snapshot_period
      ):
        on_snapshot(self.snapshot())

  def turn(self) -> List[Row]:
    """Steps the environments once, and learns meanwhile.

    Returns:
      The metrics of each episode that it finished.

    Raises:
      RuntimeError: if a turn was interrupted before.
    """
    self._check_between_turns()
    self._in_turn = True
    if self._step is None:
      self._step = self._environment.reset()
    self._environment.send(self._actor.select_actions(self._step))
    self.actor_steps += int(self._num - self._step.is_last.sum())
    self._actor.update()
    self._step = self._environment.recv()
    rows = [
      {'actor_steps': self.actor_steps, **row}
      for row in self._actor.observe(self._step)
    ]
    self._episodes += rows
    self._turns += 1
    if self._turns % self._agent.config.acting.variable_update_period == 0:
      self._actor.update_variables(self._learner.variables())
    self._learner.advance()
    self._in_turn = False
    return rows

  @property
  def learner_steps(self) -> int:
    """See the class."""
    return self._learner.num_steps

  @property
  def learner_rows(self) -> List[Row]:
    """See the class."""
    return self._learner.rows

  @property
  def replay_size(self) -> int:
    """See the class."""
    return len(self._learner.replay)

  def snapshot(self) -> Snapshot:
    """Returns what has been learned so far."""
    statistics = self._actor.statistics()
    return Snapshot(
      self.actor_steps,
      self._learner.variables(),
      None if statistics is None else statistics.merged(),
    )

  def result(self) -> Result:
    """Returns all that has come of the run so far."""
    snapshot = self.snapshot()
    return Result(
      snapshot.variables,
      snapshot.statistics,
      list(self._episodes),
      list(self._learner.rows),
      self.actor_steps,
    )

  def save(self, path: files.PathLike) -> None:
    """Writes all of the run to one file, replacing one that is there.

    An environment that cannot be kept in the middle of an episode
    (`bt_acme.environments.saving`) is named in a warning. Everything else is
    saved even so, and the run starts new episodes when it is loaded.

    Raises:
      OSError: if the file cannot be written; it is then as it was.
      RuntimeError: if a turn was interrupted.
    """
    self._check_between_turns()
    try:
      environment = self._environment.state()
    except saving.SaveNotSupportedError as error:
      logging.warning('%s', error)
      environment = None
    state = {
      'environment': environment,
      'step': None if self._step is None else tuple(self._step),
      'actor': self._actor.state(),
      'sinks': [sink.state() for sink in self._sinks],
      'writers': [writer.state() for writer in self._writers],
      'learner': self._learner.state(),
      'episodes': self._episodes,
      'turns': self._turns,
      'actor_steps': self.actor_steps,
    }
    saved_run.write(path, self._identity, state)

  def load(self, path: files.PathLike) -> None:
    """Goes on from a file that `save` wrote; this run must not have begun.

    Raises:
      ValueError: if the file is missing, damaged or foreign, or is that of a
        run with other settings, another seed or other versions.
      RuntimeError: if this run has begun.
    """
    if self._turns or self._in_turn:
      raise RuntimeError('a run that has begun cannot load another state.')
    state = saved_run.read(path, self._identity)
    try:
      self._restore(state)
    except Exception as error:  # Whatever a stranger's state makes of the code.
      raise ValueError(
        f'{path} does not fit this run ({untrusted.one_line(error)}): go on '
        'from an earlier file, or start the run anew.'
      ) from error

  def _restore(self, state: Dict[str, Any]) -> None:
    # It comes first because it may refuse.
    if state['environment'] is not None:
      self._environment.restore(state['environment'])
      if state['step'] is not None:
        self._step = vector.VectorStep(*state['step'])
    self._actor.restore(state['actor'])
    for sink, own in zip(self._sinks, state['sinks'], strict=True):
      sink.restore(own)
    for writer, own in zip(self._writers, state['writers'], strict=True):
      writer.restore(own)
    self._learner.restore(state['learner'])
    self._episodes = state['episodes']
    self._turns = state['turns']
    self.actor_steps = state['actor_steps']
    if state['environment'] is None:
      self._start_new_episodes()

  def _start_new_episodes(self) -> None:
    """Drops the episodes under way; they cannot be continued."""
    self._environment.close()
    # The seed is another one, or the first episodes would come a second time.
    self._environment = self._make_environment(
      environments.seed_of(self._seed, self.actor_steps)
    )
    self._actor.discard_episodes()
    for sink in self._sinks:
      sink.reset()

  def close(self) -> None:
    """Closes the environments."""
    self._environment.close()

  def _check_between_turns(self) -> None:
    if self._in_turn:
      raise RuntimeError(
        'the run was interrupted in the middle of a turn, so it can be neither '
        'saved nor continued: load its last file into a new InProcessRun.'
      )

  def _make_environment(self, seed: int) -> vector.Environments:
    return environments.make_vector(
      self._agent.spec.name,
      self._num,
      seed=seed,
      num_stacked=self._agent.spec.num_stacked,
    )

  def _make_actor(self) -> vector_actor.VectorActor:
    """Makes an actor that writes to the sinks, with its first variables."""
    acting = self._agent.config.acting
    actor = vector_actor.VectorActor(
      self._agent,
      epsilons=epsilon.ladder(
        self._num, base=acting.epsilon_base, alpha=acting.epsilon_alpha
      ),
      seed=self._seed,
      sinks=self._sinks,
    )
    actor.update_variables(self._learner.variables())
    return actor
