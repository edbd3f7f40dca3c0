"""Runs of an actor in marked environments, and independent logs of them."""

import functools
import itertools

import chex
import jax
import numpy as np

from bt_acme.acting import batched_core, vector_actor
from bt_acme.core import transition as transition_lib
from bt_acme.core import types
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import host_reward
from bt_acme.environments import vector
from tests.agents import fakes

N, TURNS, REFRESH = 4, 60, 17
EPSILONS = (0.5, 0.3, 0.2, 0.0)
# Episodes of four behaviors, two of which are clearly better.
SCORED = [(0, (1.0,)), (1, (-9.0,)), (2, (1.0,)), (3, (-8.0,))]


class Recorder:
  """A sink that records transitions and ends."""

  def __init__(self):
    self.transitions, self.ends = [], []

  def add(self, transition):
    # Copies, because the actor may reuse its arrays.
    copy = jax.tree.map(np.array, transition)
    self.transitions.append(transition_lib.Transition(*copy))

  def end_episode(self, *final):
    self.ends.append(jax.tree.map(np.array, final))

  def episodes(self):
    """Returns the transitions of each finished episode."""
    first = [x.prev_action == types.NO_ACTION for x in self.transitions]
    pairs = itertools.pairwise([*np.flatnonzero(first), len(first)])
    episodes = [self.transitions[start:end] for start, end in pairs]
    return episodes[: len(self.ends)]


def recorders(num=N):
  """Returns a recorder for each of N environments."""
  return [Recorder() for _ in range(num)]


def assert_steps_close(steps, expected, **tolerances):
  """Compares two lists of trees, such as transitions; all have equal shapes."""
  assert len(steps) == len(expected)
  if steps:  # One comparison takes much less time than one for each step.
    one, other = (
      jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
      for trees in (steps, expected)
    )
    chex.assert_trees_all_close(one, other, **tolerances)


def marked(indices, **settings):
  """Returns a vector of marked environments with these indices."""
  return vector.VectorEnvironment(
    [fakes.MarkedEnvironment(i, **settings) for i in indices]
  )


class Player:
  """An actor and its environments.

  Attributes:
    step: the newest step of the environments.
    actions: the actions of each vector step.
    rows: the metrics of all finished episodes.
  """

  def __init__(self, agent, environments, *, epsilons=EPSILONS, **settings):
    self.environments = environments
    self.actor = vector_actor.VectorActor(agent, epsilons=epsilons, **settings)
    self.step = environments.reset()
    self.actions, self.rows = [], []

  def play(self, turns, variables=None):
    """Takes vector steps, with new parameters if given."""
    if variables is not None:
      self.actor.update_variables(variables)
    for _ in range(turns):
      self.actions.append(self.actor.select_actions(self.step).copy())
      self.step = self.environments.step(self.actions[-1])
      self.rows += self.actor.observe(self.step)


def play(
  agent,
  indices,
  variables,
  *,
  epsilons=EPSILONS,
  reward_scale=1.0,
  turns=TURNS,
  learns=True,
  **settings,
):
  """Acts in some environments; switches parameters in the middle of episodes.

  Args:
    agent: the agent that acts.
    indices: indices of the environments.
    variables: the parameters before and from step `REFRESH` on.
    epsilons: epsilon by index.
    reward_scale: scale of the task's rewards.
    turns: number of vector steps.
    learns: whether priorities of flights change.
    **settings: further arguments of the actor, such as its sinks.

  Returns:
    The actor, and the metrics of its episodes.
  """
  player = Player(
    agent,
    marked(indices, reward_scale=reward_scale),
    epsilons=[epsilons[i] for i in indices],
    first_environment=indices[0],
    **{'seed': 5, **settings},
  )
  if not learns and player.actor.priorities is not None:
    player.actor.priorities.add = lambda episode: None
  player.play(min(turns, REFRESH), variables[0])
  if turns > REFRESH:
    player.play(turns - REFRESH, variables[1])
  return player.actor, player.rows


def policy_input(num, observation):
  """Returns the input of a policy of N environments in mid-episode."""
  return batched_core.PolicyInput(
    observation,
    prev_action=np.zeros(num, np.int32),
    prev_reward=np.zeros(num, np.float32),
    is_first=np.zeros(num, bool),
    is_last=np.zeros(num, bool),
    host_inputs=(),
  )


def follow(agent, variables, index, actions, held):
  """Recomputes all steps of an actor from the executed actions alone.

  Args:
    agent: the agent that acts.
    variables: the parameters before and from step `REFRESH` on.
    index: the index of the environment.
    actions: the actions executed in the environment.
    held: for each action, whether the recurrent state stayed unchanged.

  Returns:
    The steps by (index, episode, step), and the statistics of the reward.
  """
  rewards_next = (
    agent.intrinsic is not None
    and agent.config.intrinsic.reward_observation == 'next'
  )
  environment, steps = fakes.MarkedEnvironment(index), {}

  def novelty(embedding, params, timestep):
    observation = timestep.observation
    features = embed(embedding.intrinsic.get('embedding', {}), observation)
    return reward_of.take(
      features_lib.Features(
        np.asarray(features)[None],
        np.asarray(error(params.intrinsic, observation))[None],
      ),
      np.array([timestep.first()]),
      np.array([False]),
    )[0]

  network_step = jax.jit(agent.network.step)
  reward_of = embedding = None
  if agent.intrinsic is not None:
    reward_of = host_reward.HostReward(agent.config.intrinsic, 1)
    embed = jax.jit(agent.intrinsic.embed)
    error = jax.jit(agent.intrinsic.error)
  timestep = environment.reset()
  actions, held = iter(actions), iter(held)
  previous = None  # The previous step of this episode.
  for turn in range(TURNS + 1):
    params = variables[turn >= REFRESH]
    key = fakes.marks(timestep.observation[..., -1:])
    if timestep.first():
      prev_action, prev_reward = types.NO_ACTION, 0.0
      state = agent.network.initial_state()
      embedding, previous = params, None
    entry = {
      'observation': timestep.observation,
      'prev_action': prev_action,
      'prev_reward': prev_reward,
    }
    steps[key] = entry
    if turn == TURNS:
      break  # This is the outcome of the last step.
    if reward_of is not None and (rewards_next or not timestep.last()):
      reward = novelty(embedding, params, timestep)
      if rewards_next and previous is not None:
        previous['reward'] = reward
    if timestep.last():
      timestep = environment.step(0)
      continue
    inputs = types.AgentInput(
      timestep.observation,
      np.int32(prev_action),
      np.float32(prev_reward),
      np.array(timestep.first()),
    )
    q_values, after = network_step(params.agent, inputs, state)
    action = next(actions, None)
    if action is None and rewards_next:
      break  # The reward of the newest step is not known yet.
    timestep = environment.step(action)
    if reward_of is None:
      reward = timestep.reward
    entry.update(
      recurrent_state=state,
      action=action,
      q_values=q_values,
      reward=reward,
      discount=timestep.discount,
    )
    prev_action, prev_reward, previous = action, reward, entry
    state = state if next(held) else after
  assert next(actions, None) is None
  return steps, reward_of and reward_of.statistics()


_LOGGED = (
  *('observation', 'prev_action', 'prev_reward', 'recurrent_state'),
  *('action', 'reward', 'discount', 'q_values'),
)


def assert_matches_log(recorder, agent, log, epsilon):
  """Checks that all recorded steps equal the logged steps with their marks."""
  steps, num_choices = recorder.transitions, agent.network.num_choices
  keys = [fakes.marks(x.observation[..., -1:]) for x in steps]
  assert len(set(keys)) == len(keys)
  as_floats = functools.partial(jax.tree.map, np.float64)
  assert_steps_close(
    as_floats([[getattr(x, name) for name in _LOGGED] for x in steps]),
    as_floats([[log[key][name] for name in _LOGGED] for key in keys]),
    rtol=1e-4,
    atol=1e-5,
  )
  for final in recorder.ends:
    entry = log[fakes.marks(final[0][..., -1:])]
    expected = [entry[name] for name in _LOGGED[:3]]
    assert_steps_close(*as_floats([[final], [tuple(expected)]]), rtol=1e-4)
  for x in steps:
    if x.source == types.OWN or num_choices == fakes.ACTIONS:
      assert x.choice == x.action
    else:
      assert x.choice >= fakes.ACTIONS
      scripted = fakes.scripted()(x.observation, 0, False)
      assert x.choice != fakes.ACTIONS or x.action == scripted
    greedy = x.choice == np.argmax(x.q_values)
    probability = epsilon / num_choices + (1 - epsilon) * greedy
    if x.source == types.FLIGHT:
      probability = 1.0
    np.testing.assert_allclose(x.probability, probability, rtol=1e-5)
