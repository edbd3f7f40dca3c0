"""Recorded steps, and both sides' way to write them into replay."""

import itertools
from typing import Any, List, NamedTuple

import dm_env
import haiku as hk
import numpy as np
import reverb
from acme.wrappers import observation_action_reward

from benchmarks import harness
from bt_acme import assembly, environments
from bt_acme.acting import transition as transition_lib
from bt_acme.agents import builders as builders_lib
from bt_acme.core import types


class Recording(NamedTuple):
  """Steps of a random policy; `timesteps` has one more than `actions`."""

  timesteps: List[dm_env.TimeStep]
  actions: np.ndarray


def cut(recording: Recording, steps: int) -> Recording:
  """The first steps of a recording, whose last episode ends there."""
  timesteps = recording.timesteps[: steps + 1]
  if timesteps[-1].first():
    timesteps.pop()
  timesteps[-1] = timesteps[-1]._replace(step_type=dm_env.StepType.LAST)
  return Recording(timesteps, recording.actions[: len(timesteps) - 1])


def record(game: str, steps: int) -> Recording:
  """Plays a game at random."""
  environment = environments.make(game, seed=0)
  num_actions = environment.action_spec().num_values
  actions = np.random.default_rng(0).integers(
    num_actions, size=steps, dtype=np.int32
  )
  timesteps = [environment.reset()]
  timesteps += [environment.step(action) for action in actions]
  environment.close()
  return cut(Recording(timesteps, actions), steps)


def _states(num: int) -> np.ndarray:
  """Recurrent states [num, 2, 512] that no compression makes smaller."""
  return np.random.default_rng(0).uniform(-1, 1, (num, 2, 512)).astype('f4')


class OurWriter:
  """A recording as `VectorActor` hands it to one game's sink."""

  def __init__(self, agent: assembly.Agent, client: reverb.Client):
    builder = builders_lib.AgentBuilder(agent)
    self._sink, self._writer = builder.make_sink(client)

  def prepare(self, recording: Recording) -> List[Any]:
    """The calls of a recording, made before anything is timed."""
    calls: List[Any] = []
    states = itertools.cycle(_states(100))
    q_values = np.zeros(18, np.float32)
    timesteps, actions = recording
    for before, action, after in zip(
      timesteps, actions, timesteps[1:], strict=False
    ):
      if before.last():
        continue
      # Frame by frame in memory, as the vector environment gives them.
      frames = np.moveaxis(before.observation, -1, 0).copy()
      calls.append(
        transition_lib.Transition(
          observation=np.moveaxis(frames, 0, -1),
          prev_action=action,
          prev_reward=0.0,
          recurrent_state=types.LSTMState(*next(states)),
          action=action,
          choice=action,
          source=0,
          probability=1.0,
          reward=after.reward,
          discount=after.discount,
          q_values=q_values,
        )
      )
      if after.last():
        calls.append(after)
    return calls

  def write(self, calls: List[Any]) -> float:
    """Writes one round; returns microseconds a step."""
    start = harness.clock()
    for call in calls:
      if isinstance(call, transition_lib.Transition):
        self._sink.add(call)
      else:
        self._sink.end_episode(call.observation, 0, 0.0)
    elapsed = harness.clock() - start
    return 1e6 * elapsed / len(calls)

  def flush(self) -> None:
    """Waits until all that was written has arrived."""
    self._writer.flush()


class AcmeWriter:
  """The same through dm-acme's `SequenceAdder`."""

  def __init__(self, builder: Any, client: reverb.Client):
    self._adder = builder.make_adder(client)

  def prepare(self, recording: Recording) -> List[Any]:
    """The calls of a recording, made before anything is timed."""
    states = [hk.LSTMState(*state) for state in _states(100)]
    timesteps = [_as_oar(timestep) for timestep in recording.timesteps]
    extras = itertools.cycle({'core_state': state} for state in states)
    actions = [np.int32(0), *recording.actions]
    return list(zip(actions, timesteps, extras, strict=False))

  def write(self, calls: List[Any]) -> float:
    """Writes one round; returns microseconds a step."""
    start = harness.clock()
    for action, timestep, extras in calls:
      if timestep.first():
        self._adder.add_first(timestep)
      else:
        self._adder.add(action, timestep, extras)
    elapsed = harness.clock() - start
    return 1e6 * elapsed / len(calls)


def _as_oar(timestep: dm_env.TimeStep) -> dm_env.TimeStep:
  """The time step as Acme's OAR wrapper gives it."""
  return timestep._replace(
    observation=observation_action_reward.OAR(
      timestep.observation, np.int32(0), np.float32(0)
    )
  )
