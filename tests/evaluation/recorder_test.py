"""Tests recordings of episodes."""

import jax
import numpy as np
import pytest

from bt_acme import assembly, behaviors, environments
from bt_acme import config as config_lib
from bt_acme.config import names
from bt_acme.core import types
from bt_acme.evaluation import Evaluator, recorder

_NAME = 'MiniGrid-Empty-5x5-v0'


@pytest.fixture(name='agent', scope='module')
def make_agent():
  settings = {'torso_size': 8, 'lstm_size': 8, 'head_size': 8}
  flights = {'min_flight_probability': 0.3, 'max_flight_probability': 0.4}
  config = names.build(config_lib.BTConfig, {**settings, **flights})
  spec = assembly.spec_of(environments.make(_NAME, seed=0), _NAME)
  return assembly.Agent(config, spec, (behaviors.ActionRepeat(),))


def test_replaying_a_recording(agent):
  evaluator = Evaluator(agent, episodes=3, seed=5, epsilon=0.5, flights=True)
  variables = assembly.Variables(agent.network.init(jax.random.key(0)), {})
  recordings = recorder.record(evaluator, variables)
  sources = {s for recording in recordings for s in recording.sources}
  assert types.FLIGHT in sources and types.OWN in sources
  for i, recording in enumerate(recordings):
    environment = environments.make(_NAME, seed=environments.seed_of(5, i))
    step = environment.reset()
    rewards = []
    for action, cell in zip(recording.actions, recording.cells, strict=True):
      assert not step.last()
      assert environment.agent_cell() == cell
      step = environment.step(action)
      rewards.append(step.reward)
    assert step.last()
    assert recording.metrics['episode_length'] == len(rewards)
    np.testing.assert_allclose(
      recording.metrics['episode_return'], sum(rewards)
    )
    assert recording.is_solved == (sum(rewards) > 0)
    assert 1 <= recording.num_cells <= 9


def test_flights_are_disabled_by_default(agent):
  evaluator = Evaluator(agent, episodes=2, seed=5, epsilon=0.5)
  variables = assembly.Variables(agent.network.init(jax.random.key(0)), {})
  ended = []
  evaluator.run(variables, on_end=ended.append)
  assert sorted(ended) == [0, 1]
  for recording in recorder.record(evaluator, variables):
    assert types.FLIGHT not in recording.sources


def test_the_behavior_in_control_selected_the_action():
  def always(action):
    return behaviors.FromCallable(
      lambda seed: lambda observation, prev_action, is_first: action
    )

  settings = {'torso_size': 8, 'lstm_size': 8, 'head_size': 8}
  for name, probability in (('min', 0.3), ('max', 0.4)):
    settings[f'{name}_flight_probability'] = probability
  config = names.build(
    config_lib.BTConfig, {**settings, 'behavior_roles': 'fly,both,choose'}
  )
  spec = assembly.spec_of(environments.make(_NAME, seed=0), _NAME)
  agent = assembly.Agent(config, spec, tuple(map(always, range(3))))
  evaluator = Evaluator(agent, episodes=2, seed=5, epsilon=0.8, flights=True)
  seen = set()

  def on_step(step, going):
    for source, behavior, action in zip(
      evaluator.sources, evaluator.in_control, evaluator.actions, strict=True
    ):
      if source != types.OWN:
        assert behavior == action
        seen.add((int(source), int(behavior)))

  variables = assembly.Variables(agent.network.init(jax.random.key(0)), {})
  evaluator.run(variables, on_step=on_step)
  extra, flight = types.EXTRA, types.FLIGHT
  assert seen == {(extra, 1), (extra, 2), (flight, 0), (flight, 1)}
