"""Tests that a restored actor continues exactly like the original actor."""

import pickle

import chex
import jax
import pytest

from bt_acme.acting import flight_priorities, vector_actor
from bt_acme.environments import vector
from tests.acting import runs
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')

KINDS = (
  'r2d2',
  'ngu:reward_observation=next',
  'bt:flight_priorities=learned,flight_epsilon=0.5',
  'bt:flight_law=jump_start',
  'bt:flight_law=triggered',
)


class Player:
  """An actor and its environments."""

  def __init__(self, agent, variables, *, seed, epsilons=runs.EPSILONS):
    self.sinks = runs.recorders()
    self.environments = vector.VectorEnvironment(
      [fakes.MarkedEnvironment(seed + i) for i in range(runs.N)]
    )
    scores = None
    if agent.learns_priorities:
      scores = flight_priorities.new_scores(agent)
    self.actor = vector_actor.VectorActor(
      agent, epsilons=epsilons, seed=seed, sinks=self.sinks, scores=scores
    )
    self.actor.update_variables(variables)
    self.step = self.environments.reset()
    self.seen = []

  def play(self, turns):
    for _ in range(turns):
      actions = self.actor.select_actions(self.step)
      self.step = self.environments.step(actions)
      self.seen.append((actions, self.actor.observe(self.step)))

  def state(self):
    return pickle.dumps(
      (self.environments.state(), self.actor.state(), tuple(self.step))
    )

  def restore(self, state):
    environments, actor, step = pickle.loads(state)
    self.environments.restore(environments)
    self.actor.restore(actor)
    self.step = vector.VectorStep(*step)


def assert_same(one, other):
  assert jax.tree.structure(one) == jax.tree.structure(other)
  chex.assert_trees_all_equal(one, other)


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('turns', [0, 23])
def test_a_restored_actor_continues(agents, kind, turns):
  agent, variables = agents(kind)
  one = Player(agent, variables[0], seed=0)
  one.play(turns)
  state = one.state()
  before = [len(sink.transitions) for sink in one.sinks]
  one.seen.clear()
  one.play(20)
  # This actor differs in every respect until it restores the state.
  other = Player(agent, variables[1], seed=9, epsilons=(0.1, 0.9, 0.0, 0.7))
  other.play(3)
  other.restore(state)
  other.seen.clear()
  for sink in other.sinks:
    sink.transitions.clear()
  other.play(20)
  assert_same(one.seen, other.seen)
  for sink, again, num in zip(one.sinks, other.sinks, before, strict=True):
    assert len(again.transitions) > 10
    runs.assert_steps_close(
      sink.transitions[num:], again.transitions, rtol=0, atol=0
    )
  assert_same(one.actor.statistics(), other.actor.statistics())
  if agent.learns_priorities:
    assert one.actor.priorities.take() == other.actor.priorities.take() != []


def test_a_state_does_not_change_afterwards(agents):
  agent, variables = agents('ngu:reward_observation=next')
  player = Player(agent, variables[0], seed=0)
  player.play(5)
  state = player.actor.state()
  before = pickle.dumps(state)
  player.play(5)
  assert_same(pickle.loads(before), state)
