"""From an environment's steps to the replay.

`SequenceSink` takes what `acting.vector_actor` hands out. `SequenceAdder` is
the same with the interface of Acme's adders, for Acme's actors and loops. Both
write to a server (`writer.ReverbWriter`) or to a replay in this process
(`in_process.InProcessWriter`).
"""

from typing import Any, Callable, Dict, Mapping, Optional, Protocol

import numpy as np

from bt_acme import config as config_lib
from bt_acme.acting import transition as transition_lib
from bt_acme.replay import blocks, fields
from bt_acme.replay import builder as builder_lib
from bt_acme.replay import initial_priority as initial_priority_lib

# Acme's loop hands these to an adder itself; the rest comes as extras.
_FROM_LOOP = ('observation', 'action', 'reward', 'discount')
_EXTRAS = tuple(
  name for name in transition_lib.Transition._fields if name not in _FROM_LOOP
)


class BlockWriter(Protocol):
  """Where one environment's blocks go."""

  def write(self, block: blocks.FinishedBlock, priority: float) -> None:
    """Writes a block, and the sequence that it completes, if any.

    Args:
      block: the environment's next block.
      priority: the sequence's priority; not read if no sequence is complete.
    """


class SequenceSink:
  """Takes one environment's transitions, in order."""

  def __init__(
    self,
    builder: builder_lib.SequenceBuilder,
    writer: BlockWriter,
    *,
    initial_priority: initial_priority_lib.InitialPriority = (
      initial_priority_lib.unit
    ),
  ):
    """Builds the sink.

    Args:
      builder: the builder of this environment alone.
      writer: the writer of this environment alone.
      initial_priority: the function that is asked once for each sequence, when
        it is inserted.
    """
    self._builder = builder
    self._writer = writer
    self._initial_priority = initial_priority

  def add(self, transition: transition_lib.Transition) -> None:
    """Takes the next step of the episode."""
    self._write(self._builder.add(transition))

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

  def state(self) -> Dict[str, Any]:
    """Returns the episode so far, as far as it is not written yet."""
    return self._builder.state()

  def restore(self, state: Dict[str, Any]) -> None:
    """Goes on from a state."""
    self._builder.restore(state)

  def _write(self, block: Optional[blocks.FinishedBlock]) -> None:
    if block is None:
      return
    priority = 0.0
    if block.sequence:
      priority = self._initial_priority(block)
    self._writer.write(block, priority)


def make_sink(
  config: config_lib.R2D2Config,
  shapes: fields.ReplayShapes,
  writer: BlockWriter,
  *,
  num_actions: int,
  largest_priority: Optional[Callable[[], float]] = None,
) -> SequenceSink:
  """Makes the sink of one environment of an agent.

  Args:
    config: the agent's settings.
    shapes: what the replay holds.
    writer: the writer of this environment alone.
    num_actions: A, the number of actions.
    largest_priority: see `initial_priority.make`.
  """
  return SequenceSink(
    builder_lib.SequenceBuilder(config.replay, shapes),
    writer,
    initial_priority=initial_priority_lib.make(
      config, num_actions=num_actions, largest_priority=largest_priority
    ),
  )


class SequenceAdder:
  """A `SequenceSink` with the interface of `acme.adders.Adder`."""

  def __init__(self, sink: SequenceSink):
    self._sink = sink
    self._observation: Optional[np.ndarray] = None

  def add_first(self, timestep: Any) -> None:
    """Begins an episode; one that has not ended is dropped.

    Args:
      timestep: the episode's first dm_env.TimeStep.
    """
    self._sink.reset()
    self._observation = timestep.observation

  def add(
    self, action: int, next_timestep: Any, extras: Mapping[str, Any]
  ) -> None:
    """Takes a step and what it led to.

    Args:
      action: the executed action.
      next_timestep: the dm_env.TimeStep that it led to.
      extras: the fields of `Transition` that Acme's loop does not know. If they
        are given, `reward` and `discount` take the place of those of the time
        step. The agent may maximize another reward than the task's, which then
        never enters the replay, and may count no values after a truncation. On
        an episode's last step `final_prev_reward` says which reward the agent
        would see next, if it is not that of the step.

    Raises:
      ValueError: before `add_first`.
    """
    if self._observation is None:
      raise ValueError('add_first must come before add.')
    reward = extras.get('reward', next_timestep.reward)
    self._sink.add(
      transition_lib.Transition(
        observation=self._observation,
        action=action,
        reward=reward,
        discount=extras.get('discount', next_timestep.discount),
        **{name: extras[name] for name in _EXTRAS},
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
