"""The learner core as an Acme learner: counts, logs, priorities, variables."""

import threading
import time
from typing import Any, Iterator, List, Mapping, NamedTuple, Optional, Sequence

import acme
import jax
import jax.numpy as jnp
import numpy as np
from acme.utils import counting, loggers

from bt_acme import assembly, learner_assembly
from bt_acme.acting import statistics_store
from bt_acme.core import data_parallel, types
from bt_acme.core import learner_core as learner_core_lib
from bt_acme.replay import (
  blocks,
  initial_priority,
  priority_updates,
  sampling_metrics,
)
from bt_acme.replay import sampler as sampler_lib


@jax.jit
def _copy(variables: assembly.Variables) -> assembly.Variables:
  """Copies on the device, with one compiled call for all shapes."""
  return jax.tree.map(jnp.copy, variables)


def _finite(priorities: jax.Array) -> np.ndarray:
  """Waits for a step's priorities; raises ValueError if it diverged."""
  values = np.asarray(priorities, np.float64)
  priority_updates.check_finite_priorities(values)
  return values


class _Step(NamedTuple):
  """A learner step that the devices may still be busy with.

  Attributes:
    sample: what it learns from; the devices may be reading its arrays.
    priorities: the priorities of the sequences, float32 [B].
    metrics: the metrics of the step.
    variables: copies of the parameters after the step, to be published; None if
      they are not published.
  """

  sample: blocks.Sample
  priorities: jax.Array
  metrics: types.Metrics
  variables: Optional[assembly.Variables]


class Learner(acme.Learner):
  """Learns from sampled sequences; one class for R2D2, NGU and BT.

  Actors report the running statistics of their intrinsic reward here
  (`statistics_store`).
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
    initial_params: Any = None,
  ):
    """Initializes the parameters.

    Args:
      agent: the agent that learns.
      random_key: the key that initializes the parameters.
      dataset: yields batches without end. A `SequenceSampler` gets them back.
      priority_updater: writes priorities back; None leaves them as they are.
      counter: the counter of `learner_steps`.
      logger: the logger of metrics.
      initial_params: parameters of the Q-network to start from; None for fresh
        ones.

    Raises:
      ValueError: if this machine does not have the devices that `num_devices`
        and `batch_size` ask for.
    """
    self._agent = agent
    self._dataset = dataset
    self._priority_updater = priority_updater
    self._counter = counter or counting.Counter()
    self._logger = logger or loggers.NoOpLogger()
    core = learner_assembly.make_learner_core(agent)
    self._shardings = data_parallel.make_shardings(agent.config.learner)
    self._state = jax.device_put(
      core.init(random_key, initial_params), self._shardings.state
    )
    self._step = data_parallel.jit_step(core.step, self._shardings)
    self._unfinished: Optional[_Step] = None
    self._lock = threading.Lock()
    self._statistics = statistics_store.make_store(agent)
    self._largest_priority = initial_priority.LargestPriority()
    self._sampling = sampling_metrics.SamplingMetrics(
      agent.config.replay.max_replay_size
    )
    self._learner_steps = 0
    self._replay_size = 0
    self._last_step = time.monotonic()
    self._publish(self._copy_variables())

  def step(self) -> None:
    """Starts a learner step, and finishes the one before.

    Between the start of one step and the start of the next, the learner waits
    only for the next batch and for the previous step's results. A batch moves
    to the devices while they are busy with the previous step, and its own step
    is queued by the time they are done. There are never more than two batches
    on the devices.
    """
    sample = next(self._dataset)
    batch, probabilities = jax.device_put(
      (sample.batch, np.float32(sample.probabilities)),
      (self._shardings.batch, self._shardings.per_sequence),
    )
    self._state, priorities, metrics = self._step(
      self._state, batch, probabilities
    )
    self._learner_steps += 1
    self._replay_size = sample.table_size
    variables = None
    if self._learner_steps % self._agent.config.learner.publish_period == 0:
      variables = self._copy_variables()
    unfinished = self._unfinished
    self._unfinished = _Step(sample, priorities, metrics, variables)
    if unfinished is not None:
      self._finish(unfinished)

  def advance(self, seconds: float) -> bool:
    """Takes steps for this many seconds, as far as there are batches.

    Args:
      seconds: the time after which no other step is started.

    Returns:
      Whether a step was ever taken, so that it is compiled.
    """
    assert isinstance(self._dataset, sampler_lib.SequenceSampler)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
      if self._dataset.ready(seconds / 2):
        self.step()
    return self._unfinished is not None

  def flush(self) -> None:
    """Finishes the last step and publishes its parameters.

    Raises:
      ValueError: if the learner has diverged.
    """
    if self._unfinished is not None:
      self._finish(self._unfinished)
      self._unfinished = None
    self._publish(self._copy_variables())

  def _finish(self, step: _Step) -> None:
    """Waits for a step, then hands its results out."""
    values = _finite(step.priorities)
    self._largest_priority.update(values)
    if isinstance(self._dataset, sampler_lib.SequenceSampler):
      # Devices read the batch until the step is done, and a CPU may read the
      # sampler's own arrays.
      self._dataset.release(step.sample)
    if self._priority_updater is not None:
      self._priority_updater.update(step.sample.keys, values)
    if step.variables is not None:
      self._publish(step.variables)
    sampling = self._sampling.compute(
      step.sample.keys, step.sample.probabilities, values
    )
    counts = self._counter.increment(learner_steps=1)
    now = time.monotonic()
    self._logger.write(
      {
        **counts,
        **{name: float(value) for name, value in step.metrics.items()},
        **sampling,
        'replay_size': self._replay_size,
        'seconds_per_learner_step': now - self._last_step,
      }
    )
    self._last_step = now

  def _copy_variables(self) -> assembly.Variables:
    """Copies the parameters and starts to move the copies to the host.

    The parameters themselves are used up by the next step.
    """
    variables = _copy(
      assembly.Variables(self._state.params, self._state.intrinsic_params)
    )
    for array in jax.tree.leaves(variables):
      array.copy_to_host_async()
    return variables

  def _publish(self, variables: assembly.Variables) -> None:
    """Waits for copies of the parameters, then lets actors have them."""
    published = jax.tree.map(np.asarray, variables)
    with self._lock:
      self._published = published

  @property
  def variables(self) -> assembly.Variables:
    """The parameters as they were last published; NumPy arrays."""
    with self._lock:
      return self._published

  @property
  def max_priority(self) -> float:
    """The largest priority of recent steps; new sequences may start with it."""
    return self._largest_priority()

  @property
  def replay_size(self) -> int:
    """How many sequences were in the replay when the last batch was sampled."""
    return self._replay_size

  @property
  def learner_steps(self) -> int:
    """Learner steps so far, those before the checkpoint included."""
    return self._learner_steps

  def get_variables(self, names: Sequence[str]) -> List[Any]:
    """Returns published variables by name: `agent` or `intrinsic`."""
    variables = self.variables
    return [getattr(variables, name) for name in names]

  def put_statistics(self, first_environment: int, statistics: Any) -> None:
    """Takes running statistics; see `StatisticsStore.put`."""
    self._statistics.put(first_environment, statistics)

  def get_statistics(
    self, first_environment: int, num_environments: int
  ) -> Optional[Any]:
    """Returns running statistics; see `StatisticsStore.get`."""
    return self._statistics.get(first_environment, num_environments)

  def merged_statistics(self) -> Optional[Any]:
    """Returns the statistics of all environments as one; None without any."""
    return self._statistics.merged()

  def save(self) -> Mapping[str, Any]:
    """Returns what a checkpoint needs; called from the learner's own thread.

    It asks nothing of other processes, because they may have ended already.

    Raises:
      ValueError: if the learner has diverged, which is not worth keeping.
    """
    largest_priority = initial_priority.LargestPriority()
    largest_priority.restore(self._largest_priority.state())
    if self._unfinished is not None:
      # The arrays below have taken this step, so its priorities count too.
      largest_priority.update(_finite(self._unfinished.priorities))
    return {
      'arrays': jax.tree.map(np.array, self._state),
      'values': {
        'statistics': self._statistics.save(),
        'max_priority': largest_priority(),
        'learner_steps': self._learner_steps,
      },
    }

  @property
  def template(self) -> learner_core_lib.LearnerState:
    """The structure, shapes and dtypes of the arrays that `save` returns."""
    return self._state

  def restore(self, state: Mapping[str, Any]) -> None:
    """Resumes from what `save` returned."""
    # Copies, because the next step uses its arrays up.
    arrays = jax.tree.map(jnp.array, state['arrays'])
    self._state = jax.device_put(arrays, self._shardings.state)
    values = state['values']
    self._largest_priority.restore(values['max_priority'])
    self._learner_steps = values['learner_steps']
    self._statistics.restore(values['statistics'])
    self._publish(self._copy_variables())
