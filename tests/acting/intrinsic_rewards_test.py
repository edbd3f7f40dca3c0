"""Tests the rewards of actions, from the environments to the replay."""

import types as types_lib

import chex
import jax
import numpy as np
import pytest

from bt_acme.agents import acme_actor
from tests.acting import runs
from tests.agents import fakes
from tests.reference import intrinsic as reference

pytestmark = pytest.mark.usefixtures('shared_functions')


def assert_rewards_match_reference(agent, variables, recorder):
  """Checks the rewards of all finished episodes of a recorder.

  Returns:
    The modulators of the rewarded observations of each episode.
  """
  config = agent.config.intrinsic
  episodes = recorder.episodes()
  assert len(episodes) > 3
  # The rewarded observations of each episode.
  shown = [[x.observation for x in episode] for episode in episodes]
  if config.reward_observation == 'next':
    for observations, final in zip(shown, recorder.ends, strict=True):
      observations.append(final[0])
  embed, error = (
    jax.jit(jax.vmap(f, in_axes=(None, 0)))
    for f in (agent.intrinsic.embed, agent.intrinsic.error)
  )
  together = np.concatenate(shown)
  errors = np.asarray(error(variables.intrinsic, together))
  novelties, _, alphas = reference.rewards(
    config,
    np.asarray(embed(variables.intrinsic['embedding'], together)),
    errors,
    np.concatenate([np.arange(len(x)) == 0 for x in shown]),
  )
  ends = np.cumsum([len(x) for x in shown])[:-1]
  credited = reference.credit(np.split(novelties, ends), config)
  for episode, final, (rewards, inputs) in zip(
    episodes, recorder.ends, credited, strict=True
  ):
    np.testing.assert_allclose(
      [x.reward for x in episode], rewards, rtol=1e-3, atol=1e-6
    )
    np.testing.assert_allclose(
      [*(x.prev_reward for x in episode), final[2]],
      inputs,
      rtol=1e-3,
      atol=1e-6,
    )
  return np.split(alphas, ends)


# The test of discarded episodes has statistics of single episodes, and both
# kinds of `reward_observation`.
def test_actions_are_rewarded_for_the_next_observation():
  agent = agent_rewarded(reward_observation='next', error_decay=0.1)
  variables, recorder = fakes.variables_of(agent), runs.Recorder()
  actor, rows = runs.play(agent, [1], [variables] * 2, sinks=[recorder])
  alphas = assert_rewards_match_reference(agent, variables, recorder)
  assert actor.awaits_reward
  for row, alpha in zip(rows, alphas, strict=True):
    alpha = alpha[: row['episode_length']]  # Observations before actions.
    expected = np.mean(alpha > 1), alpha.mean()
    actual = row['alpha_above_one_share'], row['alpha_mean']
    np.testing.assert_allclose(actual, expected, rtol=1e-2, atol=1e-3)


def agent_rewarded(**intrinsic):
  """Returns an NGU agent with the given settings of its reward."""
  return fakes.changed(fakes.make_agent('ngu'), intrinsic=intrinsic)


class EpisodeRecorder(runs.Recorder):
  """Records the transitions of whole episodes, like an adder's sink."""

  _kept = 0

  def end_episode(self, *final):
    super().end_episode(*final)
    self._kept = len(self.transitions)

  def reset(self):
    del self.transitions[self._kept :]


@pytest.mark.parametrize('observation', ['current', 'next'])
def test_a_discarded_episode_of_acmes_loop_leaves_no_transitions(observation):
  agent = agent_rewarded(
    reward_observation=observation, statistics_scope='episode'
  )
  variables = fakes.variables_of(agent)
  source = types_lib.SimpleNamespace(
    get_variables=lambda names: [getattr(variables, name) for name in names]
  )
  sink, environment = EpisodeRecorder(), fakes.MarkedEnvironment(1)
  actor = acme_actor.Actor(
    agent,
    jax.random.key(0),
    epsilon=0.3,
    evaluation=False,
    variable_source=source,
    adder=sink,
  )
  broken = 0
  for episode in range(12):
    timestep = environment.reset()
    actor.observe_first(timestep)
    while not timestep.last():
      action = actor.select_action(timestep.observation)
      timestep = environment.step(action)
      actor.observe(action, timestep)
      if episode % 2 and not timestep.last():
        broken += 1
        break
  assert broken > 3
  assert len(sink.ends) == 12 - broken
  # Rewards do not depend on the discarded episodes.
  assert_rewards_match_reference(agent, variables, sink)


def test_the_task_reward_has_no_effect_in_pre_training(agents):
  agent, variables = agents('ngu')
  played, returns = [], []
  for scale in (1.0, -100.0):
    recorders = runs.recorders()
    actor, rows = runs.play(
      agent, range(runs.N), variables, sinks=recorders, reward_scale=scale
    )
    played.append(([r.transitions for r in recorders], actor.statistics()))
    returns.append([row['episode_return'] for row in rows])
  chex.assert_trees_all_equal(*played)
  np.testing.assert_allclose(returns[1], -100 * np.array(returns[0]), rtol=1e-5)
