"""From an environment's steps to replay.

`SequenceSink` takes what `acting.VectorActor` hands out; `SequenceAdder` is
the same behind Acme's adder interface, for Acme's actors and loops. Both write
to a server (`writer.ReverbWriter`) or to this process (`local.LocalWriter`).
"""

from typing import Any, Callable, Mapping, Optional, Protocol, Tuple

import numpy as np

from bt_acme.replay import blocks


class BlockWriter(Protocol):
  """Where one environment's blocks go."""

  def write(self, block: blocks.FinishedBlock, priority: float) -> None:
    """Writes a block, and the sequence that it completes, if it does."""


def unit_priority() -> float:
  """1, the priority of a new sequence where nothing better is known."""
  return 1.0


class SequenceSink:
  """Takes one environment's transitions, in order."""

  def __init__(
    self,
    builder: blocks.SequenceBuilder,
    writer: BlockWriter,
    *,
    initial_priority: Callable[[], float] = unit_priority,
  ):
    """Builds the sink.

    Args:
      builder: of this environment alone.
      writer: of this environment alone.
      initial_priority: of a new sequence, asked when it is inserted.
    """
    self._builder = builder
    self._writer = writer
    self._initial_priority = initial_priority

  def add(self, transition: Tuple) -> None:
    """Takes the next step.

    Args:
      transition: the arguments of `SequenceBuilder.add`, in their order.
    """
    self._write(self._builder.add(*transition))

  def end_episode(
    self, observation: np.ndarray, prev_action: int, prev_reward: float
  ) -> None:
    """Takes what the last step led to; see `SequenceBuilder.end_episode`."""
    self._write(
      self._builder.end_episode(observation, prev_action, prev_reward)
    )

  def reset(self) -> None:
    """Drops an episode that has not ended; what was written stays."""
    self._builder.reset()

  def _write(self, block: Optional[blocks.FinishedBlock]) -> None:
    if block is not None:
      self._writer.write(block, self._initial_priority())


class SequenceAdder:
  """The interface of `acme.adders.Adder` before a `SequenceSink`."""

  def __init__(self, sink: SequenceSink):
    self._sink = sink
    self._observation: Optional[np.ndarray] = None

  def add_first(self, timestep: Any) -> None:
    """Begins an episode; one that has not ended is dropped.

    Args:
      timestep: dm_env.TimeStep, the episode's first.
    """
    self._sink.reset()
    self._observation = timestep.observation

  def add(
    self, action: int, next_timestep: Any, extras: Mapping[str, Any]
  ) -> None:
    """Takes a step and what it led to.

    Args:
      action: the executed one.
      next_timestep: dm_env.TimeStep.
      extras: `prev_action` and `prev_reward` as the agent saw them, the
        `recurrent_state` before the step, `choice`, `source`, `probability`;
        and `reward`, where the agent maximizes another than the task's, which
        then never enters replay. On an episode's last step,
        `final_prev_reward`, where the agent would see another behind it.

    Raises:
      ValueError: before `add_first`.
    """
    if self._observation is None:
      raise ValueError('add_first must come before add.')
    reward = extras.get('reward', next_timestep.reward)
    self._sink.add(
      (
        self._observation,
        extras['prev_action'],
        extras['prev_reward'],
        extras['recurrent_state'],
        action,
        extras['choice'],
        extras['source'],
        extras['probability'],
        reward,
        next_timestep.discount,
      )
    )
    self._observation = next_timestep.observation
    if next_timestep.last():
      final = extras.get('final_prev_reward', reward)
      self._sink.end_episode(next_timestep.observation, action, final)
      self._observation = None

  def reset(self) -> None:
    """Drops an episode that has not ended, as when an actor is stopped."""
    self._sink.reset()
    self._observation = None
