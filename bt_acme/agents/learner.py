"""The learner core as an Acme learner: counts, logs, priorities, variables."""

import threading
import time
from typing import (
  Any,
  Dict,
  Iterable,
  Iterator,
  List,
  Mapping,
  NamedTuple,
  Optional,
  Sequence,
)

import acme
import jax
import jax.numpy as jnp
import numpy as np
from acme.utils import counting, loggers

from bt_acme import assembly, learner_assembly
from bt_acme.core import data_parallel, types
from bt_acme.core import learner_core as learner_core_lib
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.replay import blocks, priority_updates
from bt_acme.replay import sampler as sampler_lib

AGENT, INTRINSIC = 'agent', 'intrinsic'


@jax.jit
def _copy(variables: assembly.Variables) -> assembly.Variables:
  """Copies on the device, compiled as one; by itself each shape would be."""
  return jax.tree.map(jnp.copy, variables)


class _Step(NamedTuple):
  """A step that the devices may still be busy with.

  Attributes:
    sample: that it learns from; the devices may be reading its arrays.
    priorities: float32 [B].
    metrics: of the step.
    variables: copies of the parameters behind it, to be published; None if they
      are not.
  """

  sample: blocks.Sample
  priorities: jax.Array
  metrics: types.Metrics
  variables: Optional[assembly.Variables]


_Statistics = Dict[
  int, reward_lib.IntrinsicStatistics
]  # Float64 [], by environment.


def _split(first: int, statistics: Iterable[Any]) -> _Statistics:
  """Statistics [N] of the environments from the first on, each by itself."""
  fields = [np.asarray(x, np.float64) for x in statistics]
  return {
    first + i: reward_lib.IntrinsicStatistics(*one)
    for i, one in enumerate(zip(*fields, strict=True))
  }


def _join(
  statistics: Iterable[reward_lib.IntrinsicStatistics],
) -> reward_lib.IntrinsicStatistics:
  """Statistics of N environments, float64 [N]."""
  return reward_lib.IntrinsicStatistics(
    *(np.stack(fields) for fields in zip(*statistics, strict=True))
  )


def _statistics_of(values: Mapping[str, Any]) -> _Statistics:
  """The statistics among the values that `Learner.save` gave."""
  statistics: _Statistics = {}
  # An entry may hold those of the environments behind it as well.
  for first, saved in values['statistics'].items():
    statistics.update(
      _split(int(first), reward_lib.IntrinsicStatistics(**saved))
    )
  return statistics


def _merge(statistics: _Statistics) -> Optional[reward_lib.IntrinsicStatistics]:
  """Statistics of all environments as one; None without any."""
  if not statistics:
    return None
  in_order = [s for _, s in sorted(statistics.items())]
  return reward_lib.merge_statistics(_join(in_order))


def saved_statistics(
  values: Mapping[str, Any],
) -> Optional[reward_lib.IntrinsicStatistics]:
  """Of all environments as one, from the values that `Learner.save` gave."""
  return _merge(_statistics_of(values))


class Learner(acme.Learner):
  """Learns from sampled sequences; one class for R2D2, NGU and BT.

  Actors report the running statistics of their intrinsic reward here: they are
  part of what a checkpoint holds, and of the behavior that is exported.
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
      agent: what learns.
      random_key: of the initialization.
      dataset: endless batches. A `SequenceSampler` gets them back.
      priority_updater: writes priorities back; None leaves them.
      counter: counts `learner_steps`.
      logger: of metrics.
      initial_params: of the Q-network, to start from instead of fresh ones.

    Raises:
      ValueError: if the devices at hand are not what `num_devices` and
        `batch_size` ask for.
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
    self._statistics: _Statistics = {}
    self._max_priority = 1.0
    self._learner_steps = 0
    self._replay_size = 0
    self._last_step = time.monotonic()
    self._publish(self._copy_variables())

  def step(self) -> None:
    """Starts a learner step, and finishes the one before.

    Nothing is waited for between the start of a step and that of the next, but
    for the next batch: it is on its way to the devices while they are busy with
    the step, and the next step stands in line when they are done. There are
    never more than two batches on the devices.
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
    """Waits for a step and hands out what it came to."""
    values = self._take_priorities(step.priorities)
    if isinstance(self._dataset, sampler_lib.SequenceSampler):
      # Not before: devices read the batch until the step is done, and that of
      # a CPU may have no copy of it.
      self._dataset.release(step.sample)
    if self._priority_updater is not None:
      self._priority_updater.update(step.sample.keys, values)
    if step.variables is not None:
      self._publish(step.variables)
    counts = self._counter.increment(learner_steps=1)
    now = time.monotonic()
    self._logger.write(
      {
        **counts,
        **{name: float(value) for name, value in step.metrics.items()},
        'replay_size': self._replay_size,
        'seconds_per_learner_step': now - self._last_step,
      }
    )
    self._last_step = now

  def _take_priorities(self, priorities: jax.Array) -> np.ndarray:
    """Waits for a step's priorities; raises ValueError if it went wrong."""
    values = np.asarray(priorities, np.float64)
    if not np.isfinite(values).all():
      raise ValueError(
        'A priority is not a finite number: the learner has diverged. Lower '
        'learning_rate or max_gradient_norm.'
      )
    self._max_priority = max(self._max_priority, float(values.max()))
    return values

  def _copy_variables(self) -> assembly.Variables:
    """Copies of the parameters, on their way to the host.

    The next step uses the parameters themselves up.
    """
    variables = _copy(
      assembly.Variables(self._state.params, self._state.intrinsic_params)
    )
    for array in jax.tree.leaves(variables):
      array.copy_to_host_async()
    return variables

  def _publish(self, variables: assembly.Variables) -> None:
    """Waits for copies of the parameters and lets actors have them."""
    published = jax.tree.map(np.asarray, variables)
    with self._lock:
      self._published = published

  @property
  def variables(self) -> assembly.Variables:
    """As last published; NumPy arrays."""
    with self._lock:
      return self._published

  @property
  def max_priority(self) -> float:
    """The largest priority so far; new sequences start with it."""
    return self._max_priority

  @property
  def replay_size(self) -> int:
    """Sequences in the replay, when the last batch was sampled."""
    return self._replay_size

  @property
  def learner_steps(self) -> int:
    """Taken so far, earlier runs on the same checkpoint included."""
    return self._learner_steps

  def get_variables(self, names: Sequence[str]) -> List[Any]:
    """Published variables; names are `agent` and `intrinsic`."""
    variables = self.variables
    return [getattr(variables, name) for name in names]

  def put_statistics(
    self, first_environment: int, statistics: reward_lib.IntrinsicStatistics
  ) -> None:
    """Takes the running statistics of environments that are side by side.

    Args:
      first_environment: its index in the whole run.
      statistics: float [N].
    """
    with self._lock:
      self._statistics.update(_split(int(first_environment), statistics))

  def get_statistics(
    self, first_environment: int, num_environments: int
  ) -> Optional[reward_lib.IntrinsicStatistics]:
    """What `put_statistics` took last for N environments, in whichever groups.

    Args:
      first_environment: its index in the whole run.
      num_environments: N.

    Returns:
      Float64 [N]; None if there is nothing for one of them.
    """
    indices = range(first_environment, first_environment + num_environments)
    with self._lock:
      if not all(i in self._statistics for i in indices):
        return None
      return _join(self._statistics[i] for i in indices)

  def merged_statistics(self) -> Optional[reward_lib.IntrinsicStatistics]:
    """Statistics of all environments as one; None without any."""
    with self._lock:
      return _merge(self._statistics)

  def save(self) -> Mapping[str, Any]:
    """All that a checkpoint needs; call it from the learner's own thread.

    It asks nothing of other processes, which may have ended already.

    Raises:
      ValueError: if the learner has diverged: that is not worth keeping.
    """
    if self._unfinished is not None:
      self._take_priorities(self._unfinished.priorities)
    with self._lock:
      statistics = {
        str(index): {k: [float(v)] for k, v in s._asdict().items()}
        for index, s in self._statistics.items()
      }
    return {
      'arrays': jax.tree.map(np.array, self._state),
      'values': {
        'statistics': statistics,
        'max_priority': self._max_priority,
        'learner_steps': self._learner_steps,
      },
    }

  @property
  def template(self) -> learner_core_lib.LearnerState:
    """Structure, shapes and dtypes of the arrays that `save` gives."""
    return self._state

  def restore(self, state: Mapping[str, Any]) -> None:
    """Goes on from what `save` gave."""
    # Copies, which the next step may use up.
    arrays = jax.tree.map(jnp.array, state['arrays'])
    self._state = jax.device_put(arrays, self._shardings.state)
    values = state['values']
    self._max_priority = values['max_priority']
    self._learner_steps = values['learner_steps']
    with self._lock:
      self._statistics = _statistics_of(values)
    self._publish(self._copy_variables())
