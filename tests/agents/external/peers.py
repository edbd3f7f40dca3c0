"""Small agents of dm-acme and their networks."""

import haiku as hk
from acme.agents.jax import dqn, r2d2, td3
from acme.jax import networks as networks_lib
from acme.jax import utils
from acme.utils import loggers

from bt_acme import agents, behaviors
from bt_acme import config as config_lib
from tests.agents.external import scripted


def dqn_builder(spec):
  del spec
  config = dqn.DQNConfig(
    batch_size=4,
    n_step=1,
    min_replay_size=1,
    samples_per_insert_tolerance_rate=float('inf'),
    epsilon=0.5,
  )
  return dqn.DQNBuilder(
    config, dqn.PrioritizedDoubleQLearning(), loggers.NoOpLogger
  )


def dqn_networks(spec):
  network = hk.without_apply_rng(
    hk.transform(
      lambda x: hk.nets.MLP([8, spec.actions.num_values])(hk.Flatten()(x))
    )
  )
  dummy = utils.add_batch_dim(utils.zeros_like(spec.observations))
  return networks_lib.FeedForwardNetwork(
    lambda key: network.init(key, dummy), network.apply
  )


class _Recurrent(hk.RNNCore):
  """A small recurrent Q-network on Acme's OAR observations."""

  def __init__(self, num_values):
    super().__init__(name='recurrent')
    self._torso = hk.nets.MLP([8], activate_final=True)
    self._lstm = hk.LSTM(8)
    self._head = hk.Linear(num_values)

  def __call__(self, inputs, state):
    hidden, state = self._lstm(
      self._torso(hk.Flatten()(inputs.observation)), state
    )
    return self._head(hidden), state

  def initial_state(self, batch_size):
    return self._lstm.initial_state(batch_size)

  def unroll(self, inputs, state):
    return hk.static_unroll(self, inputs, state)


def r2d2_networks(spec):
  def network():
    return _Recurrent(spec.actions.num_values)

  return r2d2.make_networks(
    spec,
    forward_fn=lambda x, state: network()(x, state),
    initial_state_fn=lambda batch_size=None: network().initial_state(
      batch_size
    ),
    unroll_fn=lambda x, state: network().unroll(x, state),
    batch_size=2,
  )


R2D2_CONFIG = r2d2.R2D2Config(
  burn_in_length=0,
  trace_length=3,
  sequence_period=4,
  batch_size=2,
  samples_per_insert=0.0,
  min_replay_size=1,
)


def r2d2_builder(networks):
  return r2d2.R2D2Builder(networks, R2D2_CONFIG, loggers.NoOpLogger)


def td3_builder():
  config = td3.TD3Config(
    batch_size=4,
    min_replay_size=1,
    samples_per_insert_tolerance_rate=float('inf'),
  )
  return td3.TD3Builder(config, loggers.NoOpLogger)


def build(base=dqn_builder, spec=None, given=None, **config):
  return agents.BTBuilder(
    base,
    [behaviors.Uniform()] if given is None else given,
    config_lib.TransferConfig(**config),
    environment_spec=spec or scripted.discrete_spec(),
  )
