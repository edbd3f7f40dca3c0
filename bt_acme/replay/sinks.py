"""Writes the steps of an environment to the replay.

`SequenceSink` receives the transitions of `acting.vector_actor`.
`SequenceAdder` wraps it in the interface of Acme's adders, for Acme's actors
and loops. Both write to a server (`writer.ReverbWriter`) or to a replay in this
process (`in_process.InProcessWriter`).
"""

from typing import Any, Callable, Dict, Mapping, Optional

import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import transition as transition_lib
from bt_acme.replay import blocks, fields, sequence_builder
from bt_acme.replay import initial_priority as initial_priority_lib

# Acme's loop passes these fields to an adder; all others are extras.
_FROM_LOOP = ('observation', 'action', 'reward', 'discount')
_EXTRAS = tuple(
  name for name in transition_lib.Transition._fields if name not in _FROM_LOOP
)


# Writes a block and the sequence that it completes, if any, with its priority.
# The priority is ignored if no sequence is complete.
WriteBlock = Callable[[blocks.FinishedBlock, float], None]


class SequenceSink:
  """Receives the transitions of one environment in order."""

  def __init__(
    self,
    builder: sequence_builder.SequenceBuilder,
    write: WriteBlock,
    *,
    initial_priority: initial_priority_lib.InitialPriority = (
      initial_priority_lib.unit
    ),
  ):
    """Initializes the sink.

    Args:
      builder: the builder of this environment.
      write: the `write` method of this environment's writer.
      initial_priority: a function that returns the priority of a new sequence.
    """
    self._builder = builder
    self._write_block = write
    self._initial_priority = initial_priority

  def add(self, transition: transition_lib.Transition) -> None:
    """Adds the next step of the episode."""
    self._write(self._builder.add(transition))

  def end_episode(
    self, observation: np.ndarray, prev_action: int, prev_reward: float
  ) -> None:
    """Ends an episode; see `SequenceBuilder.end_episode` for the arguments."""
    self._write(
      self._builder.end_episode(observation, prev_action, prev_reward)
    )

  def reset(self) -> None:
    """Discards the unwritten part of an unfinished episode."""
    self._builder.reset()

  def state(self) -> Dict[str, Any]:
    """Returns the unwritten part of the current episode."""
    return self._builder.state()

  def restore(self, state: Dict[str, Any]) -> None:
    """Restores a state returned by `state`."""
    self._builder.restore(state)

  def _write(self, block: Optional[blocks.FinishedBlock]) -> None:
    if block is not None:
      priority = self._initial_priority(block) if block.sequence else 0.0
      self._write_block(block, priority)


def make_sink(
  config: config_lib.R2D2Config,
  shapes: fields.ReplayShapes,
  write: WriteBlock,
  *,
  num_actions: int,
  largest_priority: Optional[Callable[[], float]] = None,
) -> SequenceSink:
  """Returns the sink of one environment of an agent.

  Args:
    config: the settings of the agent.
    shapes: the shapes of the stored data.
    write: the `write` method of this environment's writer.
    num_actions: A, the number of actions.
    largest_priority: see `initial_priority.make`.
  """
  return SequenceSink(
    sequence_builder.SequenceBuilder(config.replay, shapes),
    write,
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
    """Starts an episode and discards an unfinished one.

    Args:
      timestep: the first dm_env.TimeStep of the episode.
    """
    self._sink.reset()
    self._observation = timestep.observation

  def add(
    self, action: int, next_timestep: Any, extras: Mapping[str, Any]
  ) -> None:
    """Adds a step and its outcome.

    Args:
      action: the executed action.
      next_timestep: the resulting dm_env.TimeStep.
      extras: the fields of `Transition` that Acme's loop does not know. The
        optional extras `reward` and `discount` replace the values of the time
        step: the agent may maximize a reward other than the task's, which is
        then not stored, and may ignore values after a truncation. In an
        episode's last step, the optional `final_prev_reward` is the reward that
        the agent would see next, if it differs from the reward of the step.

    Raises:
      ValueError: if `add_first` has not been called.
    """
    if self._observation is None:
      raise ValueError('No episode has started. Call add_first before add.')
    reward = extras.get('reward', next_timestep.reward)
    self._sink.add(
      transition_lib.Transition(
        observation=self._observation,
        action=action,
        reward=reward,
        discount=extras.get('discount', next_timestep.discount),
        **{name: extras[name] for name in _EXTRAS if name in extras},
      )
    )
    self._observation = next_timestep.observation
    if next_timestep.last():
      final = extras.get('final_prev_reward', reward)
      self._sink.end_episode(next_timestep.observation, action, final)
      self._observation = None

  def reset(self) -> None:
    """Discards an unfinished episode, for example when an actor stops."""
    self._sink.reset()
    self._observation = None
