"""Adapts `bt_acme.learner` to Acme: counts, logs, priorities and variables."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import acme
import jax
import numpy as np
from acme.utils import counting, loggers

from bt_acme import assembly
from bt_acme import learner as learner_lib
from bt_acme.config import checks
from bt_acme.core import types
from bt_acme.replay import blocks, priority_updates
from bt_acme.replay import sampler as sampler_lib

# A learner step that has started, but not finished: its sample, whose arrays
# devices may still read, and copies of the new parameters, or None if this step
# is not published.
_Started = tuple[blocks.Sample, assembly.Variables | None]


class Learner(learner_lib.Learner, acme.Learner):
  """Trains R2D2, NGU or BT on sampled sequences.

  Attributes:
    replay_size: the number of sequences in the replay when the last batch was
      sampled.
  """

  def __init__(
    self,
    agent: assembly.Agent,
    random_key: jax.Array,
    dataset: Iterator[blocks.Sample],
    *,
    priority_updater: priority_updates.PriorityUpdater | None = None,
    counter: counting.Counter | None = None,
    logger: loggers.Logger | None = None,
    initial_params: types.Params | None = None,
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
    super().__init__(agent, random_key, initial_params)
    self._agent = agent
    self._dataset = dataset
    self._priority_updater = priority_updater
    self._counter = counter or counting.Counter()
    self._logger = logger or loggers.NoOpLogger()
    self._started: _Started | None = None
    self.replay_size = 0
    self._last_step = time.monotonic()
    self._publish(self.copy_variables())

  def step(self) -> None:
    """Starts a learner step and finishes the previous step.

    Between the starts of two steps, the learner waits only for the next batch
    and for the results of the previous step. A batch moves to the devices while
    they compute the previous step, and its own step is queued before they are
    done. The devices never hold more than two batches.
    """
    sample = next(self._dataset)
    # JAX has no 64-bit integers by default. Reverb ignores unknown keys.
    checks.require(
      sample.keys.dtype == np.uint64,
      f'The keys of the sequences are {sample.keys.dtype}, not uint64, because '
      'the layout has moved the batch to a device. Pass device_prefetch=False '
      'to the layout; the dataset prefetches batches itself.',
    )
    self.start(sample)
    self.replay_size = sample.table_size
    variables = None
    if self.learner_steps % self._agent.config.learner.publish_period == 0:
      variables = self.copy_variables()
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
      FloatingPointError: if the learner has diverged.
    """
    if self._started is not None:
      self._finish(self._started)
      self._started = None
    self._publish(self.copy_variables())

  def _finish(self, started: _Started) -> None:
    """Waits for the oldest step and distributes its results."""
    sample, variables = started
    step = self.finish()
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
        'replay_size': self.replay_size,
        'seconds_per_learner_step': now - self._last_step,
      }
    )
    self._last_step = now

  def _publish(self, variables: assembly.Variables) -> None:
    """Waits for copies of the parameters and makes them available to actors."""
    self._published = jax.tree.map(np.asarray, variables)

  @property
  def variables(self) -> assembly.Variables:
    """The most recently published parameters, as NumPy arrays.

    Other threads may read them, because publishing replaces all of them at
    once.
    """
    return self._published

  @property
  def learner_steps(self) -> int:
    """The number of started steps, including steps before a restore."""
    return self.num_finished + len(self.pending)

  def restore(self, state: Mapping[str, Any]) -> None:
    """Restores a state returned by `save` and discards an unfinished step."""
    super().restore(state)
    self._started = None
    self._publish(self.copy_variables())
