"""Tests that a restored actor continues exactly like the original actor."""

import pickle

import chex
import jax
import pytest

from bt_acme.acting import behavior_scores
from bt_acme.environments import vector
from tests.acting import runs

pytestmark = pytest.mark.usefixtures('shared_functions')

KINDS = (
  'ngu:reward_observation=next',
  'bt:flight_law=jump_start,flight_priorities=learned,extra_action=False',
  'bt:flight_law=triggered,flight_epsilon=0.5',
)


def make_player(agent, variables, *, seed, epsilons=runs.EPSILONS):
  """Returns an actor with these parameters, and its sinks."""
  scores = None
  if agent.learns_priorities:
    scores = behavior_scores.new_scores(agent)
  sinks, games = runs.recorders(), runs.marked(range(seed, seed + runs.N))
  settings = {'epsilons': epsilons, 'seed': seed, 'scores': scores}
  player = runs.Player(agent, games, sinks=sinks, **settings)
  player.play(0, variables)
  return player, sinks


def state_of(player):
  parts = player.environments.state(), player.actor.state(), (*player.step,)
  return pickle.dumps(parts)


def restore(player, state):
  environments, actor, step = pickle.loads(state)
  player.environments.restore(environments)
  player.actor.restore(actor)
  player.step = vector.VectorStep(*step)


def assert_same(one, other):
  assert jax.tree.structure(one) == jax.tree.structure(other)
  chex.assert_trees_all_equal(one, other)


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('turns', [0, 23])
def test_a_restored_actor_continues(agents, kind, turns):
  agent, variables = agents(kind)
  one, sinks = make_player(agent, variables[0], seed=0)
  one.play(turns)
  state = state_of(one)
  before = [len(sink.transitions) for sink in sinks]
  num_rows = len(one.rows)
  one.play(20)
  # This actor differs in every respect until it restores the state.
  settings = {'seed': 9, 'epsilons': (0.1, 0.9, 0.0, 0.7)}
  other, others = make_player(agent, variables[1], **settings)
  other.play(3)
  restore(other, state)
  other.rows.clear()
  for sink in others:
    sink.transitions.clear()
  other.play(20)
  assert_same(one.actions[-20:], other.actions[-20:])
  assert_same(one.rows[num_rows:], other.rows)
  for sink, again, num in zip(sinks, others, before, strict=True):
    assert len(again.transitions) > 10
    runs.assert_steps_close(
      sink.transitions[num:], again.transitions, rtol=0, atol=0
    )
  assert_same(one.actor.statistics(), other.actor.statistics())
  if agent.learns_priorities:
    assert one.actor.priorities.take() == other.actor.priorities.take() != []


def test_a_state_does_not_change_afterwards(agents):
  agent, variables = agents('ngu:reward_observation=next')
  player, _ = make_player(agent, variables[0], seed=0)
  player.play(5)
  state = player.actor.state()
  before = pickle.dumps(state)
  player.play(5)
  assert_same(pickle.loads(before), state)
