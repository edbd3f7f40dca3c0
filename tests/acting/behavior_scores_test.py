"""Tests learned priorities of flights in the vectorized actor."""

import json

import chex
import numpy as np
import pytest

from bt_acme.acting import behavior_scores
from bt_acme.core import types
from tests.acting import runs
from tests.agents import fakes
from tests.reference import behavior_choice as reference

pytestmark = pytest.mark.usefixtures('shared_functions')

_K = 4  # Behaviors of the agents of `fakes`.


@pytest.fixture(name='agent', scope='module')
def make_agent():
  agent = fakes.make_agent('bt:flight_priorities=learned')
  return _changed(agent, behavior_draws='episode', priority_floor=0.0)


def _changed(agent, **settings):
  return fakes.changed(agent, transfer=settings)


def _play(agent, scores, *, turns=150, **settings):
  """Returns the actor, its rows, and the sinks of its transitions."""
  settings = {'sinks': runs.recorders(), 'scores': scores, **settings}
  actor, rows = runs.play(
    agent,
    range(runs.N),
    [fakes.variables_of(agent)] * 2,
    epsilons=[0.3] * runs.N,
    seed=2,
    turns=turns,
    **settings,
  )
  return actor, rows, settings['sinks']


def _flown(episode):
  """Returns the behavior of each flight step of an episode."""
  return [
    int(x.choice) - fakes.ACTIONS for x in episode if x.source == types.FLIGHT
  ]


_DRAWN_BY_FLIGHT = {'priority_signal': 'return', 'behavior_draws': 'flight'}


@pytest.mark.parametrize(
  'settings',
  [
    {},
    _DRAWN_BY_FLIGHT,
    {
      **{'priority_signal': 'novelty', 'behavior_draws': 'auto'},
      'priority_floor': 0.1,
    },
  ],
)
def test_scores_and_rows_follow_the_flights(agent, settings):
  agent = _changed(agent, **settings)
  transfer = agent.config.transfer
  actor, rows, sinks = _play(agent, behavior_scores.new_scores(agent))
  scored, seen, several = [], [0] * runs.N, 0
  by_environment = [sink.episodes() for sink in sinks]
  for row in rows:
    i = row['environment']
    episode = by_environment[i][seen[i]]
    seen[i] += 1
    rewards = [float(x.reward) for x in episode]
    discovery = sum(max(reward, 0.0) for reward in rewards)
    assert row['discovery'] == pytest.approx(discovery, rel=1e-5)
    normalized = reference.normalized_scores(scored, _K, 64)
    expected = reference.probabilities(
      normalized, [1] * _K, temperature=0.1, floor=transfer.priority_floor
    )
    actual = [row[f'flight_priority_{k}'] for k in range(_K)]
    np.testing.assert_allclose(actual, expected, rtol=1e-4)
    flown = _flown(episode)
    behaviors = sorted(set(flown), key=lambda k: (-flown.count(k), k))
    several += len(behaviors) > 1
    assert row['flight_behavior'] == (behaviors[0] if behaviors else -1)
    scores = {
      'discovery': discovery,
      'return': sum(rewards),
      'novelty': len({x.observation.tobytes() for x in episode}),
    }
    scored += [(k, scores[transfer.priority_signal]) for k in behaviors]
  assert len(scored) > 30
  assert bool(several) == (transfer.behavior_draws == 'flight')
  assert actor.priorities.take() == [
    (k, (pytest.approx(score, rel=1e-5),)) for k, score in scored
  ]
  assert not actor.priorities.take()


@pytest.mark.parametrize('settings', [{}, _DRAWN_BY_FLIGHT])
def test_flights_draw_behaviors_with_their_priorities(agent, settings):
  agent = _changed(agent, **settings)
  scores = behavior_scores.ScoreStore(agent).exchange(runs.SCORED)
  actor, _, sinks = _play(agent, scores, turns=400, learns=False)
  # The other two are almost two standard deviations below.
  np.testing.assert_allclose(
    actor.priorities.probabilities(), [0.5, 0, 0.5, 0], atol=0.005
  )
  episodes = [_flown(x) for sink in sinks for x in sink.episodes()]
  steps = np.bincount(sum(episodes, []), minlength=_K)
  assert steps[[0, 2]].min() > 5 * steps[[1, 3]].sum()
  together = any(len(set(flown)) > 1 for flown in episodes)
  assert together == bool(settings)


def test_novelty_counts_until_there_is_a_discovery(agent):
  agent = _changed(agent, priority_signal='discovery_then_novelty')
  store = behavior_scores.ScoreStore(agent)
  learned = behavior_scores.GroupPriorities(agent, store.exchange([]))
  np.testing.assert_allclose(learned.probabilities(), np.full(_K, 1 / _K))
  learned.replace(store.exchange([(k, (0.0, k + 1.0)) for k in range(_K)]))
  assert learned.probabilities().argmax() == 3
  learned.replace(store.exchange([(1, (0.1, 0.0))]))
  assert learned.probabilities().argmax() == 1


def test_actors_without_scores_do_not_learn(agent):
  fixed = _changed(agent, flight_priorities='fixed', priority_floor=0.1)
  actor, rows, _ = _play(agent, None, turns=40)
  assert actor.priorities is None
  assert not any('flight_priority_0' in row for row in rows)
  assert rows == _play(fixed, None, turns=40)[1]


def test_a_store_adds_the_episodes_of_all_groups(agent):
  agent = _changed(agent, priority_floor=0.1)
  store = behavior_scores.ScoreStore(agent)
  assert store.save() == []
  one, other = (
    behavior_scores.GroupPriorities(agent, store.exchange([])) for _ in range(2)
  )
  one.replace(store.exchange([(0, (1.0,)), (2, (0.5,))]))
  other.replace(store.exchange([(0, (3.0,))]))
  expected = reference.normalized_scores([(0, 1.0), (2, 0.5), (0, 3.0)], _K, 64)
  expected = reference.probabilities(
    expected, [1] * _K, temperature=0.1, floor=0.1
  )
  np.testing.assert_allclose(other.probabilities(), expected)
  assert not np.allclose(one.probabilities(), expected)
  saved = json.loads(json.dumps(store.save()))
  again = behavior_scores.ScoreStore(agent)
  again.restore([])
  again.restore(saved)
  chex.assert_trees_all_equal(again.exchange([]), store.exchange([]))
