"""Tests that the learner core depends on the agent's configuration.

tests/acting/learned_steps_test.py has recurrent states that flights hold.
"""

import jax
import jax.numpy as jnp
import numpy as np

from bt_acme import assembly, learner_assembly
from bt_acme import config as config_lib
from bt_acme.core import types
from tests.core import toys

_SPEC = assembly.EnvironmentSpec('toy', (6, 6, 1), 1, 3)
_GROUPS = {
  'network': config_lib.NetworkConfig(torso_size=8, lstm_size=3, head_size=8),
  'replay': toys.replay_config(6),
}


def test_intrinsic_networks_have_their_own_learning_rate():
  config = config_lib.NGUConfig(
    **_GROUPS,
    intrinsic=config_lib.IntrinsicConfig(
      intrinsic_learning_rate=0.01, embedding_size=4, rnd_size=4
    ),
    learner=config_lib.LearnerConfig(loss='retrace', learning_rate=1e-5),
  )
  core = learner_assembly.make_learner_core(assembly.Agent(config, _SPEC))
  batch = toys.batch(6, 4, num_actions=3, shape=_SPEC.observation_shape)
  batch = batch._replace(source=np.full_like(batch.source, types.OWN))
  before = core.init(jax.random.key(0))
  after, _, _ = jax.jit(core.step)(before, batch, jnp.ones([4]))

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
