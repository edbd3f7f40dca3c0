"""The learner core as an Acme learner: counts, logs, priorities, variables."""

import threading
import time
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

import acme
import jax
import jax.numpy as jnp
import numpy as np
from acme.utils import counting, loggers

from bt_acme import agent as agent_lib
from bt_acme.core import learner_core as learner_core_lib
from bt_acme.core.intrinsic import ngu
from bt_acme.replay import blocks
from bt_acme.replay import dataset as dataset_lib

AGENT, INTRINSIC = 'agent', 'intrinsic'


class Learner(acme.Learner):
  """Learns from sampled sequences; one class for R2D2, NGU and BT.

  Actors report the running statistics of their intrinsic reward here: they are
  part of what a checkpoint holds, and of the behavior that is exported.
  """

  def __init__(
    self,
    agent: agent_lib.Agent,
    random_key: jax.Array,
    dataset: Iterator[blocks.Sample],
    *,
    priority_updater: Optional[dataset_lib.PriorityUpdater] = None,
    counter: Optional[counting.Counter] = None,
    logger: Optional[loggers.Logger] = None,
    initial_params: Any = None,
  ):
    """Initializes the parameters.

    Args:
      agent: what learns.
      random_key: of the initialization.
      dataset: endless batches.
      priority_updater: writes priorities back; None leaves them.
      counter: counts `learner_steps`.
      logger: of metrics.
      initial_params: of the Q-network, to start from instead of fresh ones.
    """
    self._agent = agent
    self._dataset = dataset
    self._priority_updater = priority_updater
    self._counter = counter or counting.Counter()
    self._logger = logger or loggers.NoOpLogger()
    core = agent.learner_core()
    self._state = core.init(random_key, initial_params)
    self._step = jax.jit(core.step, donate_argnums=0)
    self._unfinished: Any = None
    self._lock = threading.Lock()
    self._statistics: Dict[int, ngu.IntrinsicStatistics] = {}
    self._max_priority = 1.0
    self._learner_steps = 0
    self._replay_size = 0
    self._last_step = time.monotonic()
    self._publish()

  def step(self) -> None:
    """One learner step; its results are read behind the next one's start."""
    sample = next(self._dataset)
    batch = jax.device_put(sample.batch)
    probabilities = jax.device_put(np.float32(sample.probabilities))
    self._state, priorities, metrics = self._step(
      self._state, batch, probabilities
    )
    self._learner_steps += 1
    self._replay_size = sample.table_size
    unfinished = self._unfinished
    self._unfinished = (sample.keys, priorities, metrics)
    if unfinished is not None:
      self._finish(*unfinished)
    if self._learner_steps % self._agent.config.learner.publish_period == 0:
      self._publish()

  def flush(self) -> None:
    """Finishes the last step and publishes its parameters.

    Raises:
      ValueError: if the learner has diverged.
    """
    if self._unfinished is not None:
      self._finish(*self._unfinished)
      self._unfinished = None
    self._publish()

  def _finish(
    self,
    keys: np.ndarray,
    priorities: jax.Array,
    metrics: learner_core_lib.Metrics,
  ) -> None:
    values = self._take_priorities(priorities)
    if self._priority_updater is not None:
      self._priority_updater.update(keys, values)
    counts = self._counter.increment(learner_steps=1)
    now = time.monotonic()
    self._logger.write(
      {
        **counts,
        **{name: float(value) for name, value in metrics.items()},
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

  def _publish(self) -> None:
    """Copies the parameters to the host: the device's are given away."""
    published = agent_lib.Variables(
      *jax.tree.map(
        np.array, (self._state.params, self._state.intrinsic_params)
      )
    )
    with self._lock:
      self._published = published

  @property
  def variables(self) -> agent_lib.Variables:
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
    self, first_environment: int, statistics: ngu.IntrinsicStatistics
  ) -> None:
    """Takes the running statistics of one actor's environments."""
    with self._lock:
      self._statistics[int(first_environment)] = statistics

  def get_statistics(
    self, first_environment: int
  ) -> Optional[ngu.IntrinsicStatistics]:
    """What `put_statistics` took last for the same actor, if anything."""
    with self._lock:
      return self._statistics.get(int(first_environment))

  def merged_statistics(self) -> Optional[ngu.IntrinsicStatistics]:
    """Statistics of all environments as one; None without any."""
    with self._lock:
      statistics = [s for _, s in sorted(self._statistics.items())]
    if not statistics:
      return None
    return ngu.merge_statistics(
      ngu.IntrinsicStatistics(
        *(np.concatenate(fields) for fields in zip(*statistics, strict=True))
      )
    )

  def save(self) -> Mapping[str, Any]:
    """All that a checkpoint needs; call it from the learner's own thread.

    It asks nothing of other processes, which may have ended already.

    Raises:
      ValueError: if the learner has diverged: that is not worth keeping.
    """
    if self._unfinished is not None:
      _, priorities, _ = self._unfinished
      self._take_priorities(priorities)
    with self._lock:
      statistics = {
        str(index): {k: np.asarray(v).tolist() for k, v in s._asdict().items()}
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
    self._state = jax.tree.map(jnp.array, state['arrays'])
    values = state['values']
    self._max_priority = values['max_priority']
    self._learner_steps = values['learner_steps']
    with self._lock:
      self._statistics = {
        int(index): ngu.IntrinsicStatistics(
          **{k: np.asarray(v, np.float64) for k, v in s.items()}
        )
        for index, s in values['statistics'].items()
      }
    self._publish()
