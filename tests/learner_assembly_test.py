"""Tests that the learner core depends on the agent's configuration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import assembly, behaviors, learner_assembly
from bt_acme import config as config_lib
from bt_acme.core import types
from tests.core import toys

_SPEC = assembly.EnvironmentSpec('toy', (6, 6, 1), 1, 3)
_GROUPS = {
  'network': config_lib.NetworkConfig(torso_size=8, lstm_size=3, head_size=8),
  'replay': toys.replay_config(6),
}


def _stepped(agent, source):
  """Returns states before and after a learner step, and its priorities."""
  core = learner_assembly.make_learner_core(agent)
  batch = toys.batch(
    6,
    4,
    num_actions=3,
    num_extra=int(agent.transfer is not None),
    shape=_SPEC.observation_shape,
  )
  batch = batch._replace(source=np.full_like(batch.source, source))
  state = core.init(jax.random.key(0))
  after, priorities, _ = jax.jit(core.step)(state, batch, jnp.ones([4]))
  return state, after, priorities


@pytest.mark.parametrize('source', [types.OWN, types.FLIGHT])
def test_flight_recurrent_state(source):
  results = []
  for in_flights in ('advance', 'hold'):
    config = config_lib.BTConfig(
      **_GROUPS,
      transfer=config_lib.TransferConfig(flight_recurrent_state=in_flights),
    )
    agent = assembly.Agent(config, _SPEC, (behaviors.Uniform(),))
    results.append(_stepped(agent, source)[2])
  assert np.allclose(*results, rtol=1e-5) == (source == types.OWN)


def test_intrinsic_networks_have_their_own_learning_rate():
  config = config_lib.NGUConfig(
    **_GROUPS,
    intrinsic=config_lib.IntrinsicConfig(
      intrinsic_learning_rate=0.01, embedding_size=4, rnd_size=4
    ),
    learner=config_lib.LearnerConfig(loss='retrace', learning_rate=1e-5),
  )
  before, after, _ = _stepped(assembly.Agent(config, _SPEC), types.OWN)

  def largest_step(name):
    steps = jax.tree.map(
      lambda x, y: np.max(np.abs(x - y)),
      getattr(before, name),
      getattr(after, name),
    )
    return max(jax.tree.leaves(steps))

  # Adam's first step equals the learning rate if the gradient is large compared
  # to epsilon.
  assert 0.005 < largest_step('intrinsic_params') <= 0.0101
  assert 0 < largest_step('params') <= 1.01e-5


def test_no_intrinsic_networks_without_intrinsic_reward():
  agent = assembly.Agent(config_lib.R2D2Config(**_GROUPS), _SPEC)
  state = learner_assembly.make_learner_core(agent).init(jax.random.key(0))
  assert state.intrinsic_params == {}
  assert state.intrinsic_opt_state == ()
