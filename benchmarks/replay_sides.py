"""The replay of both sides: a server, a writer and a sampler."""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import haiku as hk
import numpy as np
import reverb
from acme.wrappers import observation_action_reward

from benchmarks import acme_side, core_parts, harness, our_side, processes
from bt_acme import assembly
from bt_acme.agents import builders as builders_lib
from bt_acme.core import transition as transition_lib
from bt_acme.core import types
from bt_acme.replay import sampler, sequences

Calls = list[Callable[[], Any]]  # Each call writes a step.


def _recurrent_states() -> Iterator[np.ndarray]:
  """Yields incompressible recurrent states [2, 512], which repeat."""
  states = np.random.default_rng(0).uniform(-1, 1, (100, 2, 512))
  return itertools.cycle(states.astype(np.float32))


def _sampling(take: Callable[[], Any], *, warm: int) -> float:
  """Measures a round of sampling after taking prefetched batches."""
  for _ in range(warm):
    take()
  return harness.timed(take)()


def calls_of(
  sink: sequences.SequenceSink, play: core_parts.RandomPlay
) -> Calls:
  """Prepares the calls that write a recording to a sink."""
  calls: Calls = []
  states = _recurrent_states()
  q_values = np.zeros(18, np.float32)
  for before, action, after in zip(
    play.timesteps, play.actions, play.timesteps[1:], strict=False
  ):
    if before.last():
      continue
    # The frames are contiguous in memory, as in the vector environment.
    frames = np.moveaxis(before.observation, -1, 0).copy()
    transition = transition_lib.Transition(
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
    calls.append(functools.partial(sink.add, transition))
    if after.last():
      end = (after.observation, 0, 0.0)
      calls.append(functools.partial(sink.end_episode, *end))
  return calls


class OurReplay(processes.OtherProcess):
  """Our replay: a sink for one game, as in `VectorActor`, and the sampler."""

  def __init__(self, agent: assembly.Agent):
    super().__init__(lambda: our_side.start_replay(agent))
    self._builder = builders_lib.AgentBuilder(agent)
    self.client = reverb.Client(self.address)
    self._sink, self._writer = self._builder.make_sink(self.client)

  def calls(self, play: core_parts.RandomPlay) -> Calls:
    """Prepares the calls that write a recording."""
    return calls_of(self._sink, play)

  def flush(self) -> None:
    """Waits until all written data have arrived."""
    self._writer.flush()

  def dataset(self) -> sampler.SequenceSampler:
    """Starts to sample batches."""
    return self._builder.make_dataset_iterator(self.client)

  def sampling(self) -> float:
    """Samples for a round and returns the seconds per batch."""
    dataset = self.dataset()
    # Like the learner, release each batch.
    cost = _sampling(lambda: dataset.release(next(dataset)), warm=5)
    dataset.stop()
    return cost


class AcmeReplay(processes.OtherProcess):
  """dm-acme's replay: its `SequenceAdder` and dataset."""

  def __init__(self, game: str, **settings: Any):
    spec, config = acme_side.make_spec(game), acme_side.make_config(**settings)
    super().__init__(
      lambda: reverb.Server(
        acme_side.make_builder(spec, config).make_replay_tables(spec)
      )
    )
    self._builder = acme_side.make_builder(spec, config)
    self.client = reverb.Client(self.address)
    self._adder = self._builder.make_adder(self.client)

  def calls(self, play: core_parts.RandomPlay) -> Calls:
    """Prepares the calls that write a recording."""
    calls: Calls = []
    states = _recurrent_states()
    actions = [np.int32(0), *play.actions]
    for action, shown in zip(actions, play.timesteps, strict=True):
      timestep = shown._replace(
        observation=observation_action_reward.OAR(
          shown.observation, np.int32(0), np.float32(0)
        )
      )
      extras = {'core_state': hk.LSTMState(*next(states))}
      if timestep.first():
        calls.append(functools.partial(self._adder.add_first, timestep))
      else:
        step = (action, timestep, extras)
        calls.append(functools.partial(self._adder.add, *step))
    return calls

  def sampling(self) -> float:
    """Samples for a round and returns the seconds per batch."""
    dataset = self._builder.make_dataset_iterator(self.client)
    return _sampling(lambda: next(dataset), warm=2)


def write(calls: Calls) -> float:
  """Writes a recording and returns the seconds per step."""
  start = harness.clock()
  for call in calls:
    call()
  return (harness.clock() - start) / len(calls)
