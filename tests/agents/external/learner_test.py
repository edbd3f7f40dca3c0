"""Tests that dm-acme's R2D2 learns from sequences of this package's actors."""

import threading

import acme
import jax
import numpy as np
import pytest
import reverb
from acme import specs, wrappers
from acme.agents.jax import r2d2
from acme.utils import loggers

from bt_acme import agents
from bt_acme.agents import acme_learner as learner_lib
from bt_acme.core import types
from tests.agents import fakes
from tests.agents.external import peers

T = fakes.T
LSTM = 8  # As in `peers.r2d2_networks`.


@pytest.fixture(name='client')
def make_client():
  """Returns a client of a server with sequences of this package's actor."""
  agent = fakes.changed(
    fakes.make_agent('r2d2'),
    network={'lstm_size': LSTM},
    replay={'codec': 'tensors'},
    # Lets the actor run far ahead of the learner.
    learner={'batch_size': 64},
  )
  builder = agents.R2D2Builder(agent.config, fakes.SPEC)
  server = reverb.Server(builder.make_replay_tables(None), port=None)
  client = reverb.Client(f'localhost:{server.port}')
  sink, writer = builder.make_sink(client)
  actor = builder.make_actor(
    jax.random.key(1),
    builder.make_policy(0.3),
    sink,
    learner_lib.Learner(builder.agent, jax.random.key(0), iter(())),
  )
  loop = acme.EnvironmentLoop(
    fakes.MarkedEnvironment(), actor, logger=loggers.NoOpLogger()
  )
  for _ in range(20):
    loop.run_episode()
  writer.flush()
  writer.close()
  yield client
  server.stop()


def test_dm_acmes_r2d2_learns_from_our_actors(client, monkeypatch):
  batch_size = peers.R2D2_CONFIG.batch_size
  config = r2d2.R2D2Config(
    burn_in_length=2,
    trace_length=T - 2,
    sequence_period=fakes.P,
    batch_size=batch_size,
    prefetch_size=1,
    num_parallel_calls=1,
  )
  environment = wrappers.SinglePrecisionWrapper(
    wrappers.ObservationActionRewardWrapper(fakes.MarkedEnvironment())
  )
  networks = agents.scale_images(peers.r2d2_networks)(
    specs.make_environment_spec(environment)
  )
  builder = r2d2.R2D2Builder(networks, config, loggers.NoOpLogger)
  dataset = builder.make_dataset_iterator(client)
  sample = next(dataset)
  step, extras = sample.data, sample.data.extras
  assert step.observation.observation.shape == (batch_size, T + 1, 5, 5, 2)
  assert step.observation.observation.dtype == np.uint8
  for b in range(batch_size):
    num_steps = int(extras['valid'][b].sum())
    frames = step.observation.observation[b, ..., -1:]
    numbers = [fakes.marks(frame) for frame in frames[: num_steps + 1]]
    _, episode, first = numbers[0]
    assert numbers == [(0, episode, first + t) for t in range(num_steps + 1)]
    assert not step.observation.observation[b, num_steps + 1 :].any()
    np.testing.assert_array_equal(
      step.start_of_episode[b], np.arange(T + 1) + first == 0
    )
    assert (step.observation.action[b, 0] == types.NO_ACTION) == (first == 0)
    for before, after in (
      (step.action, step.observation.action),
      (step.reward, step.observation.reward),
    ):
      np.testing.assert_array_equal(
        before[b, :num_steps], after[b, 1 : num_steps + 1]
      )
  assert extras['core_state'].hidden.shape == (batch_size, 1, LSTM)

  updated = threading.Event()
  mutate_priorities = client.mutate_priorities

  def mutate_and_signal(*args, **kwargs):
    mutate_priorities(*args, **kwargs)
    updated.set()

  # dm-acme's learner updates priorities in a thread that nothing joins.
  monkeypatch.setattr(client, 'mutate_priorities', mutate_and_signal)
  learner = builder.make_learner(jax.random.key(0), networks, dataset, client)
  before = learner.get_variables([''])[0]
  learner.step()
  assert updated.wait(timeout=60)
  after = learner.get_variables([''])[0]
  changed = jax.tree.map(lambda x, y: (x != y).any(), before, after)
  assert all(jax.tree.leaves(changed))
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(after))
