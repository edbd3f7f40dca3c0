"""The learner of an agent, which computes steps asynchronously.

Two subclasses provide batches and use the results: `agents.acme_learner`
implements Acme's learner and samples from Reverb, and
`runtime.engines.in_process_learner` alternates with the environments of a run
in one process.
"""

import collections
import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bt_acme import assembly, learner_assembly
from bt_acme.acting import behavior_scores, statistics_store
from bt_acme.core import data_parallel, learner_core, types
from bt_acme.core import priorities as priorities_lib
from bt_acme.replay import blocks, initial_priority, sampling_metrics


class LearnerStep(NamedTuple):
  """A step that was started or finished.

  Attributes:
    keys: the keys of the sequences, uint64 [B].
    probabilities: the sampling probabilities of the sequences, float64 [B].
    priorities: the new priorities of the sequences, float [B]; in a finished
      step, a finite NumPy array.
    metrics: the metrics of the step; in a finished step, of its sample too.
  """

  keys: np.ndarray
  probabilities: np.ndarray
  priorities: Any
  metrics: Mapping[str, jax.Array | float]

  def row(self) -> dict[str, float]:
    """Returns the metrics as floats, for a log."""
    return {name: float(value) for name, value in self.metrics.items()}


@functools.lru_cache(maxsize=8)
def _compiled(
  agent: assembly.Agent,
) -> tuple[
  learner_core.LearnerCore, data_parallel.Shardings, Callable[..., Any]
]:
  """Creates the functions once for equal agents, so that JAX compiles once."""
  core = learner_assembly.make_learner_core(agent)
  shardings = data_parallel.make_shardings(agent.config.learner)
  return core, shardings, data_parallel.jit_step(core.step, shardings)


@jax.jit
def _copy(variables: assembly.Variables) -> assembly.Variables:
  """Copies on the device, with one compiled call for all shapes."""
  return jax.tree.map(jnp.copy, variables)


def _finite(priorities: Any) -> np.ndarray:
  """Waits for priorities; raises FloatingPointError unless all are finite."""
  values = np.asarray(priorities, np.float64)
  priorities_lib.check_finite(values)
  return values


class Learner:
  """Takes the learner steps of R2D2, NGU or BT.

  The learner also stores what actors report. Other threads may report while a
  step runs, but only the learner's own thread may read `variables`.

  Attributes:
    statistics: the running statistics of the intrinsic reward.
    scores: the scores of flights.
    largest_priority: the largest priority of recent finished steps.
    sampling: the metrics of the finished steps' samples.
    num_finished: the number of finished steps.
    pending: the steps that were started but not finished, oldest first.
  """

  def __init__(
    self,
    agent: assembly.Agent,
    random_key: jax.Array,
    initial_params: types.Params | None = None,
  ):
    """Initializes the state of the learner.

    Args:
      agent: the agent that learns.
      random_key: the key of all random numbers.
      initial_params: initial parameters of the Q-network; None for random ones.

    Raises:
      ValueError: if this machine has fewer than `num_devices` devices, or if
        `batch_size` is not a multiple of it.
    """
    core, self._shardings, self._step = _compiled(agent.named(''))
    self._state = jax.device_put(
      core.init(random_key, initial_params), self._shardings.state
    )
    self.pending: collections.deque[LearnerStep] = collections.deque()
    self.statistics = statistics_store.StatisticsStore()
    self.scores = behavior_scores.ScoreStore(agent)
    self.largest_priority = initial_priority.LargestPriority()
    self.sampling = sampling_metrics.SamplingMetrics(
      agent.config.replay.max_replay_size
    )
    self.num_finished = 0

  def start(self, sample: blocks.Sample) -> None:
    """Starts a step without waiting for its results.

    Args:
      sample: the sequences. The devices may read these arrays until the step is
        finished.
    """
    # On a CPU, the compiled call transfers them faster than `jax.device_put`.
    self._state, priorities, metrics = self._step(
      self._state, sample.batch, np.float32(sample.probabilities)
    )
    self.pending.append(
      LearnerStep(sample.keys, sample.probabilities, priorities, metrics)
    )

  def finish(self) -> LearnerStep:
    """Waits for the oldest pending step.

    Raises:
      FloatingPointError: if the learner has diverged.
    """
    # All transfers start before the first one is awaited.
    step = jax.device_get(self.pending[0])
    priorities = _finite(step.priorities)
    self.pending.popleft()
    self.num_finished += 1
    self.largest_priority.update(priorities)
    sampling = self.sampling.compute(step.keys, step.probabilities, priorities)
    return step._replace(
      priorities=priorities, metrics={**step.metrics, **sampling}
    )

  def final_largest_priority(self) -> float | None:
    """Returns the largest priority after all pending steps.

    It is None before the first step.

    Raises:
      FloatingPointError: if the learner has diverged.
    """
    largest = copy.copy(self.largest_priority)
    for step in self.pending:
      largest.update(_finite(step.priorities))
    return largest.value

  def copy_variables(self) -> assembly.Variables:
    """Copies the parameters and starts the transfer of the copies to the host.

    The next step donates the original buffers. Actors fetch the copies
    (`ActingConfig.variable_update_period`).
    """
    variables = _copy(
      assembly.Variables(self._state.params, self._state.intrinsic_params)
    )
    for array in jax.tree.leaves(variables):
      array.copy_to_host_async()
    return variables

  @property
  def template(self) -> learner_core.LearnerState:
    """The structure, shapes and dtypes of the saved arrays."""
    return learner_core.without_key(self._state)

  @property
  def learner_steps(self) -> int:
    """The number of steps that count, including steps before a restore."""
    return self.num_finished

  @property
  def variables(self) -> assembly.Variables:
    """Copies of the parameters, once all pending steps are computed."""
    return jax.tree.map(np.array, self.copy_variables())

  def get_variables(self, names: Sequence[str]) -> list[types.Params]:
    """Returns `variables` by their names, `agent` and `intrinsic`."""
    variables = self.variables
    return [getattr(variables, name) for name in names]

  def save(self) -> Mapping[str, Any]:
    """Returns the state for a checkpoint; call this in the learner's thread.

    No other process is involved, because they may already have exited.

    Raises:
      FloatingPointError: if the learner has diverged.
    """
    return {
      # The arrays include every started step, so all priorities count. They
      # are copies: a view would change when the next step donates its buffer.
      'arrays': jax.tree.map(np.array, jax.device_get(self.template)),
      'values': {
        'statistics': self.statistics.save(),
        'flight_scores': self.scores.save(),
        'max_priority': self.final_largest_priority(),
        'learner_steps': self.learner_steps,
        'key': np.asarray(jax.random.key_data(self._state.key)).tolist(),
      },
    }

  def restore(self, state: Mapping[str, Any]) -> None:
    """Restores a state returned by `save` and drops pending steps."""
    values = state['values']
    # Copies, because the next step donates these buffers.
    arrays = jax.tree.map(jnp.array, state['arrays'])
    key = self._state.key  # Old checkpoints contain no key; the seed decides.
    if values.get('key') is not None:
      key = jax.random.wrap_key_data(
        jnp.array(values['key'], jnp.uint32), impl=jax.random.key_impl(key)
      )
    self._state = jax.device_put(
      arrays._replace(key=key), self._shardings.state
    )
    self.pending.clear()
    self.largest_priority.value = values['max_priority']
    self.num_finished = values['learner_steps']
    self.statistics.restore(values['statistics'])
    self.scores.restore(values.get('flight_scores', []))
