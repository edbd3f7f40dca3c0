"""Tests that a learner step on four simulated devices equals that on one."""

import re

import chex
import jax
import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import data_parallel, learner_core, networks
from bt_acme.core.intrinsic import networks as intrinsic_lib
from tests import python
from tests.core import toys

DEVICES, T, B, A, STACKED = 4, 6, 8, toys.ACTIONS, 2
SHAPE = (6, 6, STACKED)


def make_learner(num_devices):
  """Returns shardings and core of a learner with all kinds of networks."""
  # The maximum weight and the gradient norm, over the whole batch, must matter.
  learner = config_lib.LearnerConfig(
    batch_size=B,
    num_devices=num_devices,
    importance_sampling_exponent=0.6,
    max_gradient_norm=0.1,
    target_update_period=2,
    loss='retrace',
  )
  sizes = {'torso_size': 16, 'lstm_size': toys.HIDDEN, 'head_size': 16}
  core = learner_core.make_learner_core(
    networks.make_q_network(config_lib.NetworkConfig(**sizes), SHAPE, A, 1),
    toys.agent_config(learner, T, burn_in=2),
    num_stacked=STACKED,
    intrinsic=intrinsic_lib.make_networks(
      config_lib.IntrinsicConfig(),
      observation_shape=SHAPE,
      frame_channels=1,
      num_actions=A,
    ),
  )
  return data_parallel.make_shardings(learner), core


def make_inputs(seed):
  """Returns a batch with more valid steps on some devices than on others."""
  batch = toys.batch(
    T,
    B,
    num_extra=1,
    num_stacked=STACKED,
    real=[6, 6, 5, 4, 3, 3, 6, 0],
    shape=SHAPE,
    seed=seed,
  )
  probabilities = np.float32([0.3, 0.2, 0.1, 0.4, 0.01, 0.5, 0.2, 0.3])
  return batch, probabilities


def train(num_devices, state):
  """Returns the results of each of three steps, and the compiled step."""
  shardings, core = make_learner(num_devices)
  state = jax.device_put(state, shardings.state, may_alias=False)
  step = data_parallel.jit_step(core.step, shardings)
  step = step.lower(state, *make_inputs(0)).compile()
  results = []
  for seed in range(3):
    before = state
    state, *rest = step(state, *make_inputs(seed))
    assert all(x.is_deleted() for x in jax.tree.leaves(before))
    kept = learner_core.without_key(state)
    results.append(jax.tree.map(np.array, (kept, *rest)))
  for x in jax.tree.leaves((state, rest[1])):
    assert len(x.sharding.device_set) == num_devices
    assert x.is_fully_replicated
  assert rest[0].addressable_shards[0].data.shape == (B // num_devices,)
  return results, step


def compare():
  """Compares four devices with one, in a process with four devices."""
  assert jax.device_count() == DEVICES
  initial = make_learner(1)[1].init(jax.random.key(0))
  one, _ = train(1, initial)
  four, step = train(DEVICES, initial)
  _, priorities, metrics = one[-1]
  assert np.count_nonzero(priorities) == B - 1
  assert metrics['gradient_norm'] > 0.1
  chex.assert_trees_all_close(four, one, rtol=1e-4, atol=2e-6)
  batch, _ = make_inputs(0)
  batch = jax.device_put(batch, make_learner(DEVICES)[0].batch)
  for x in jax.tree.leaves(batch._replace(recurrent_state=())):
    for shard in x.addressable_shards:
      assert shard.data.shape == (len(x), B // DEVICES, *x.shape[2:])
  # Each device computes its own part; only reductions exchange data.
  collectives = re.findall(
    r' (all-\w+|collective-\w+|reduce-scatter)(?:-start)?\(', step.as_text()
  )
  assert set(collectives) == {'all-reduce'}, collectives


# `acme_learner_test` compares learners with Q(lambda).
def test_four_devices_compute_the_same_update_as_one():
  python.run_on_four_devices(
    'from tests.core import data_parallel_test as t; t.compare()'
  )


def test_zero_uses_all_devices():
  shardings = data_parallel.make_shardings(
    config_lib.LearnerConfig(batch_size=8, num_devices=0)
  )
  assert shardings.state.device_set == set(jax.local_devices())
