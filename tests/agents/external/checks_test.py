"""Tests that incompatible agents, behaviors and environments are rejected."""

import dataclasses
import types

import jax
import numpy as np
import pytest
from acme import wrappers
from acme.agents.jax import impala, ppo

from bt_acme import agents, behaviors
from tests.agents.external import peers, scripted


def _noisy_networks(spec):
  networks = peers.dqn_networks(spec)
  apply = lambda params, key, shown: networks.apply(  # noqa: E731
    params, shown + jax.random.normal(key, [])
  )
  return dataclasses.replace(networks, apply=apply)


@pytest.mark.parametrize(
  'factory', (peers.dqn_networks, peers.r2d2_networks, _noisy_networks)
)
def test_network_of_another_size_is_rejected_with_both_shapes(factory):
  spec = scripted.discrete_spec()
  if factory is peers.r2d2_networks:
    parts = spec.observations, spec.actions, spec.rewards
    with_action = wrappers.observation_action_reward.OAR(*parts)
    spec = spec._replace(observations=with_action)
  builder = peers.build(spec=spec)
  builder.make_networks(factory)  # This network has the right size.
  with pytest.raises(ValueError, match=r'\(3,\).*\(4,\)'):
    builder.make_networks(lambda agent_spec: factory(spec))
  with pytest.raises(ValueError, match=r'\(3,\).*\(4,\)'):
    builder.make_learner(jax.random.PRNGKey(0), factory(spec), iter(()))


@pytest.mark.parametrize(
  'factory',
  [
    ppo.make_gym_networks,
    lambda spec: impala.IMPALANetworks(*[None] * 5),
    # Like the networks of adversarial imitation learning.
    lambda spec: types.SimpleNamespace(
      direct_rl_networks=ppo.make_gym_networks(spec)
    ),
  ],
)
def test_on_policy_agents_are_rejected(factory):
  builder = peers.build(spec=scripted.discrete_spec())
  with pytest.raises(ValueError, match='an agent that learns from values'):
    builder.make_networks(factory)


def test_networks_that_cannot_be_scaled_are_rejected():
  make_networks = agents.scale_images(lambda spec: (len, len))
  with pytest.raises(ValueError, match='tuple contains no FeedForwardNetwork'):
    make_networks(scripted.discrete_spec())


def test_an_exported_policy_needs_matching_images(exported):
  for shape, dtype, message in (
    ((8, 8, 3), np.uint8, r'\(5, 5, 2\).*\(8, 8, 3\)'),
    ((5, 5, 2), np.float32, 'scale_images'),
  ):
    spec = scripted.discrete_spec(shape, dtype)
    with pytest.raises(ValueError, match=message):
      peers.build(spec=spec, given=[behaviors.Exported(exported)])
  with pytest.raises(ValueError, match=r"\(5, 5, 2\).* are \{'image': "):
    peers.build(
      spec=scripted.structured_spec(), given=[behaviors.Exported(exported)]
    )
