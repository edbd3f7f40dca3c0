"""Tests an actor of N environments step by step."""

import dataclasses

import numpy as np
import pytest

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.core import types
from tests.acting import runs, saving_test
from tests.agents import fakes
from tests.reference import flight_laws as reference

pytestmark = pytest.mark.usefixtures('shared_functions')


# Agents, and combinations of behavior transfer and rewards.
KINDS = (
  *('r2d2', 'ngu', 'bt'),
  'bt:extra_action=False,flight_recurrent_state=hold',
  'ngu:intrinsic_reward=constant',
  'ngu:intrinsic_reward=rnd,reward_observation=next',
)


# The tests of the replay show that sequences contain the recorded steps.
@pytest.mark.parametrize('kind', KINDS)
def test_each_step_is_recorded_unchanged(agents, kind):
  agent, variables = agents(kind)
  holds = kind.endswith('hold')
  recorders, sources = runs.recorders(), set()
  actor, _ = runs.play(agent, range(runs.N), variables, sinks=recorders)
  for i, recorder in enumerate(recorders):
    log, statistics = runs.follow(
      *(agent, variables, i),
      [int(x.action) for x in recorder.transitions],
      [holds and x.source == types.FLIGHT for x in recorder.transitions],
    )
    runs.assert_matches_log(recorder, agent, log, runs.EPSILONS[i])
    assert len(recorder.transitions) > 40 and len(recorder.ends) > 3
    sources |= {int(x.source) for x in recorder.transitions}
    if kind == 'ngu':
      # Only valid steps count, and statistics persist across episodes.
      assert actor.statistics().error_count[i] == len(recorder.transitions)
      for mine, theirs in zip(actor.statistics(), statistics, strict=True):
        np.testing.assert_allclose(mine[i], theirs[0], rtol=1e-4)
  wanted = {types.OWN}
  if kind.startswith('bt'):
    extra = agent.config.transfer.extra_action
    wanted |= {types.FLIGHT, types.EXTRA} if extra else {types.FLIGHT}
  assert sources == wanted


# The test above compares an agent without behaviors with a single log.
def test_environments_do_not_depend_on_their_neighbors(agents):
  agent, variables = agents('bt')
  together = runs.recorders()
  runs.play(agent, range(runs.N), variables, sinks=together)
  sources = set()
  for i in (1, runs.N - 1):
    alone = runs.Recorder()
    runs.play(agent, [i], variables, sinks=[alone])
    assert len(alone.ends) == len(together[i].ends) >= 4
    assert len(alone.transitions) == len(together[i].transitions) > 40
    for one, other in (
      (alone.transitions, together[i].transitions),
      (alone.ends, together[i].ends),
    ):
      runs.assert_steps_close(one, other, rtol=1e-4, atol=1e-5)
    sources |= {int(x.source) for x in alone.transitions}
  assert sources == {types.OWN, types.EXTRA, types.FLIGHT}


# The first test has agents that bootstrap at truncations.
def test_without_bootstrapping_a_truncation_is_a_terminal_step():
  acting = config_lib.ActingConfig(bootstrap_truncations=False)
  agent = fakes.make_agent('r2d2', acting=acting)
  recorders = runs.recorders()
  variables = [fakes.variables_of(agent)] * 2
  runs.play(agent, range(runs.N), variables, sinks=recorders)
  terminated_and_truncated = [0, 0]
  for i, recorder in enumerate(recorders):
    for transition in recorder.transitions:
      _, episode, step = fakes.marks(transition.observation[..., -1:])
      length = np.random.default_rng([i, episode]).integers(1, 14)
      is_last = step + 1 == length
      assert transition.discount == (not is_last)
      terminated_and_truncated[episode % 2] += is_last
  assert min(terminated_and_truncated) > 3


def test_metrics_of_episodes(agents):
  agent, variables = agents('bt')
  recorder = runs.Recorder()
  _, rows = runs.play(agent, [1], variables, sinks=[recorder])
  assert len(rows) == len(recorder.ends) > 3
  greedy_shares, extra_shares = [], []
  for row, episode in zip(rows, recorder.episodes(), strict=True):
    assert row['episode_length'] == len(episode)
    np.testing.assert_allclose(
      row['episode_return'], sum(x.reward for x in episode), rtol=1e-5
    )
    sources = np.array([x.source for x in episode])
    assert row['flight_share'] == np.mean(sources == types.FLIGHT)
    assert row['behavior_share'] == np.mean(sources != types.OWN)
    greedy = np.array([np.argmax(x.q_values) for x in episode])
    assert row['greedy_extra_share'] == np.mean(greedy >= fakes.ACTIONS)
    greedy_shares.append(row['greedy_extra_share'])
    extra_shares.append(np.mean(sources == types.EXTRA))
    # There are no proposals without kickstarting.
    assert all(x.proposal == types.NO_ACTION for x in episode)
  # Each episode has drawn its own probability.
  probabilities = {row['flight_probability'] for row in rows}
  assert len(probabilities) == len(rows)
  config = agent.config.transfer
  assert all(
    config.min_flight_probability <= p <= config.max_flight_probability
    for p in probabilities
  )
  # The greedy choice, without epsilon and flights.
  assert greedy_shares != extra_shares
  assert 0 < np.mean(greedy_shares) < 1


def test_the_jump_start_counts_the_returns_of_whole_episodes(agents):
  agent, variables = agents('bt:flight_law=jump_start')
  player, _ = saving_test.make_player(agent, variables[0], seed=0)
  player.play(200)
  rows = [[] for _ in range(runs.N)]
  for row in player.rows:
    rows[row['environment']].append(row)
  law = player.actor._policy._state.core.flight.law
  counted = 0
  for i, own in enumerate(rows):
    # The law counts an episode when the next one starts.
    own = own[: int(law.episodes[i])]
    share, mean_length = reference.jump_start_shares(
      [row['episode_return'] for row in own],
      [row['episode_length'] for row in own],
      rate=0.1,
      tolerance=0.25,
      window=5,
    )[-1]
    np.testing.assert_allclose(law.share[i], share, rtol=1e-4)
    np.testing.assert_allclose(law.mean_length[i], mean_length, rtol=1e-4)
    assert own[0]['flight_share'] == 1
    assert all(row['flights'] <= 1 for row in own)
    counted += len(own)
  assert counted > 3 * runs.N


def test_each_step_has_the_proposal_of_the_behavior_of_the_episode():
  transferred = behaviors.FromCallable(fakes.scripted), fakes.Proposing(1)
  agent = dataclasses.replace(fakes.make_agent('bt'), behaviors=transferred)
  agent = fakes.changed(agent, transfer={'kickstarting': 0.5})
  variables = [fakes.variables_of(agent)] * 2
  sinks, drawn = runs.recorders(), set()
  runs.play(agent, range(runs.N), variables, sinks=sinks)
  for sink in sinks:
    for steps in sink.episodes():
      flown = [x for x in steps if x.source == types.FLIGHT]
      assert all(x.proposal == x.action for x in flown)
      proposals = [x.proposal for x in steps]
      scripted = [fakes.scripted()(x.observation, None, None) for x in steps]
      candidates = (scripted, [1] * len(steps))
      matches = [k for k in (0, 1) if proposals == candidates[k]]
      assert matches
      if len(matches) == 1:
        drawn.add(*matches)
  assert drawn == {0, 1}


def act_with(behavior):
  """Takes two steps with a behavior."""
  agent = assembly.Agent(
    fakes.make_config(config_lib.BTConfig), fakes.SPEC, (behavior,)
  )
  runs.play(agent, [0], [fakes.variables_of(agent)], turns=2)


def test_a_behavior_cannot_change_what_the_agent_sees():
  def policy(image, action, is_first):
    if not is_first:
      image += 1
    return 0

  with pytest.raises(RuntimeError, match='raised ValueError: .*read-only') as e:
    act_with(behaviors.FromCallable(lambda seed: policy, 'mine'))
  assert "behavior 'mine'" in str(e.value)
  assert 'at actor step 1 of environment 0' in str(e.value)


def test_a_jitted_behavior_acts_in_range():
  message = "'mine' returned -3 at actor step 0 of environment 0: out of"
  with pytest.raises(ValueError, match=message):
    act_with(fakes.Proposing(-3))


@pytest.mark.parametrize(
  'settings, steps',
  # A recording evaluator needs the proposals.
  [({}, 0), ({'kickstarting': 1.0}, 5)],
)
def test_evaluations_skip_behaviors_that_only_fly(settings, steps):
  seen = []
  mine = behaviors.FromCallable(lambda seed: lambda *_: seen.append(0) or 0)
  transfer = config_lib.TransferConfig(behavior_roles='fly,both', **settings)
  config = fakes.make_config(config_lib.BTConfig, transfer=transfer)
  agent = assembly.Agent(config, fakes.SPEC, (mine, behaviors.Uniform()))
  variables = [fakes.variables_of(agent)]
  runs.play(agent, [0], variables, turns=5, evaluation=True)
  assert len(seen) == steps
