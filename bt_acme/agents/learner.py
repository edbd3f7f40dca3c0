"""Adapts `bt_acme.learner` to Acme: counts, logs, priorities and variables."""

import threading
import time
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

import acme
import jax
import numpy as np
from acme.utils import counting, loggers

from bt_acme import assembly
from bt_acme import learner as learner_lib
from bt_acme.acting import flight_priorities, statistics_store
from bt_acme.core import learner_core, types
from bt_acme.replay import blocks, priority_updates
from bt_acme.replay import sampler as sampler_lib

# A learner step that has started, but not finished: its sample, whose arrays
# devices may still read, and copies of the new parameters, or None if this step
# is not published.
_Started = Tuple[blocks.Sample, Optional[assembly.Variables]]


class Learner(acme.Learner):
  """Trains R2D2, NGU or BT on sampled sequences.

  The learner also stores what actors report: the running statistics of the
  intrinsic reward (`statistics_store`) and the scores of flights
  (`flight_priorities`).
  """

  def __init__(
    self,
    agent: assembly.Agent,
    random_key: jax.Array,
    dataset: Iterator[blocks.Sample],
    *,
    priority_updater: Optional[priority_updates.PriorityUpdater] = None,
    counter: Optional[counting.Counter] = None,
    logger: Optional[loggers.Logger] = None,
    initial_params: Optional[types.Params] = None,
  ):
    """Initializes the learner and publishes the first parameters.

    Args:
      agent: the agent that learns.
      random_key: the key that seeds all random numbers.
      dataset: an infinite iterator of batches. Used batches are released to a
        `SequenceSampler`.
      priority_updater: the updater of priorities; None to leave them unchanged.
      counter: the counter of `learner_steps`.
      logger: the logger of metrics.
      initial_params: initial parameters of the Q-network; None for random
        initialization.

    Raises:
      ValueError: if this machine lacks the devices that `num_devices` and
        `batch_size` require.
    """
    self._agent = agent
    self._dataset = dataset
    self._priority_updater = priority_updater
    self._counter = counter or counting.Counter()
    self._logger = logger or loggers.NoOpLogger()
    self._learner = learner_lib.Learner(agent, random_key, initial_params)
    self._started: Optional[_Started] = None
    self._lock = threading.Lock()
    self._statistics = statistics_store.make_store(agent)
    self._scores = flight_priorities.ScoreStore(agent)
    self._learner_steps = 0
    self._replay_size = 0
    self._last_step = time.monotonic()
    self._publish(self._learner.copy_variables())

  def step(self) -> None:
    """Starts a learner step and finishes the previous step.

    Between the starts of two steps, the learner waits only for the next batch
    and for the results of the previous step. A batch moves to the devices while
    they compute the previous step, and its own step is queued before they are
    done. The devices never hold more than two batches.
    """
    sample = next(self._dataset)
    self._learner.start(sample)
    self._learner_steps += 1
    self._replay_size = sample.table_size
    variables = None
    if self._learner_steps % self._agent.config.learner.publish_period == 0:
      variables = self._learner.copy_variables()
    previous, self._started = self._started, (sample, variables)
    if previous is not None:
      self._finish(previous)

  def advance(self, seconds: float) -> bool:
    """Runs learner steps for a limited time, as long as batches are available.

    Args:
      seconds: the time after which no further step is started.

    Returns:
      Whether a step has been started, so that the step is compiled.
    """
    assert isinstance(self._dataset, sampler_lib.SequenceSampler)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
      if self._dataset.ready(seconds / 2):
        self.step()
    return self._started is not None

  def flush(self) -> None:
    """Finishes the last step and publishes its parameters.

    Raises:
      ValueError: if the learner has diverged.
    """
    if self._started is not None:
      self._finish(self._started)
      self._started = None
    self._publish(self._learner.copy_variables())

  def _finish(self, started: _Started) -> None:
    """Waits for the oldest step and distributes its results."""
    sample, variables = started
    step = self._learner.finish()
    if isinstance(self._dataset, sampler_lib.SequenceSampler):
      # Devices read the batch until the step is done, and a CPU may read the
      # arrays of the sampler directly.
      self._dataset.release(sample)
    if self._priority_updater is not None:
      self._priority_updater.update(step.keys, step.priorities)
    if variables is not None:
      self._publish(variables)
    counts = self._counter.increment(learner_steps=1)
    now = time.monotonic()
    self._logger.write(
      {
        **counts,
        **step.row(),
        'replay_size': self._replay_size,
        'seconds_per_learner_step': now - self._last_step,
      }
    )
    self._last_step = now

  def _publish(self, variables: assembly.Variables) -> None:
    """Waits for copies of the parameters and makes them available to actors."""
    published = jax.tree.map(np.asarray, variables)
    with self._lock:
      self._published = published

  @property
  def variables(self) -> assembly.Variables:
    """The most recently published parameters, as NumPy arrays."""
    with self._lock:
      return self._published

  @property
  def max_priority(self) -> float:
    """The largest recent priority, for `initial_priority='largest'`."""
    return self._learner.largest_priority()

  @property
  def replay_size(self) -> int:
    """The number of sequences in the replay when the last batch was sampled."""
    return self._replay_size

  @property
  def learner_steps(self) -> int:
    """The number of learner steps so far, including steps before a restore."""
    return self._learner_steps

  def get_variables(self, names: Sequence[str]) -> List[types.Params]:
    """Returns published variables by their names, `agent` and `intrinsic`."""
    variables = self.variables
    return [getattr(variables, name) for name in names]

  def put_statistics(self, first_environment: int, statistics: Any) -> None:
    """Stores running statistics; see `StatisticsStore.put`."""
    self._statistics.put(first_environment, statistics)

  def get_statistics(
    self, first_environment: int, num_environments: int
  ) -> Optional[Any]:
    """Returns running statistics; see `StatisticsStore.get`."""
    return self._statistics.get(first_environment, num_environments)

  def exchange_scores(self, episodes: Sequence[Any]) -> Any:
    """Adds scored episodes and returns all scores; see `ScoreStore`."""
    return self._scores.exchange(episodes)

  def merged_statistics(self) -> Optional[Any]:
    """Returns the merged statistics of all environments, or None."""
    return self._statistics.merged()

  def save(self) -> Mapping[str, Any]:
    """Returns the state for a checkpoint; call this in the learner's thread.

    No other process is involved, because they may already have exited.

    Raises:
      ValueError: if the learner has diverged.
    """
    return {
      # The arrays include every started step, so all priorities count.
      'arrays': self._learner.arrays(),
      'values': {
        'statistics': self._statistics.save(),
        'flight_scores': self._scores.save(),
        'max_priority': self._learner.final_largest_priority(),
        'learner_steps': self._learner_steps,
        'key': self._learner.key(),
      },
    }

  @property
  def template(self) -> learner_core.LearnerState:
    """The structure, shapes and dtypes of the arrays that `save` returns."""
    return self._learner.template

  def restore(self, state: Mapping[str, Any]) -> None:
    """Restores a state returned by `save` and discards an unfinished step."""
    values = state['values']
    self._started = None
    self._learner.restore(state['arrays'], values.get('key'))
    self._learner.largest_priority.restore(values['max_priority'])
    self._learner_steps = values['learner_steps']
    self._statistics.restore(values['statistics'])
    self._scores.restore(values.get('flight_scores', []))
    self._publish(self._learner.copy_variables())
