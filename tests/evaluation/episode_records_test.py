"""Tests recordings of episodes."""

import io

import numpy as np
import pytest
from PIL import Image

from bt_acme import assembly, behaviors, environments, evaluation
from bt_acme import config as config_lib
from bt_acme.config import names
from bt_acme.core import types
from bt_acme.environments import minigrid
from bt_acme.evaluation import Evaluator, control_view, episode_records
from bt_acme.evaluation import evaluator as evaluator_lib
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')
_NAME = 'MiniGrid-Empty-5x5-v0'


@pytest.fixture(name='made', scope='module')
def make_agent():
  """Returns an agent with three behaviors, and its policy."""
  settings = {
    **dict.fromkeys(('torso_size', 'lstm_size', 'head_size'), 8),
    **{'min_flight_probability': 0.3, 'max_flight_probability': 0.4},
    'behavior_roles': 'fly,both,choose',
  }
  agent = assembly.Agent(
    names.build(config_lib.BTConfig, settings),
    assembly.spec_by_name(_NAME),
    tuple(
      behaviors.FromCallable(lambda seed, action=action: lambda *_: action)
      for action in range(3)
    ),
  )
  return agent, assembly.Learned(0, fakes.variables_of(agent), None)


def test_replaying_a_recording(made):
  agent, learned = made
  agent = assembly.moved(agent, 'MiniGrid-Empty-Random-5x5-v0')
  evaluator = Evaluator(agent, episodes=3, seed=5, epsilon=0.5, flights=True)
  recordings = episode_records.record(evaluator, learned)
  sources = {s for recording in recordings for s in recording.sources}
  assert types.FLIGHT in sources and types.OWN in sources
  for i, recording in enumerate(recordings):
    seed = environments.seed_of(5, evaluation.FIRST_ENVIRONMENT + i)
    environment = environments.make(agent.spec.name, seed=seed)
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


def test_evaluations_count_only_their_own_steps_and_have_no_flights(made):
  agent, learned = made
  evaluator = Evaluator(agent, episodes=3, seed=5, epsilon=0.8)
  for _ in range(2):
    ended, played = [], []
    rows = evaluator.run(
      learned,
      on_step=lambda step, going, to=played: to.append(going.copy()),
      on_end=ended.append,
    )
    assert sorted(ended) == [0, 1, 2]
    lengths = [row['episode_length'] for row in rows]
    np.testing.assert_array_equal(lengths, np.sum(played, axis=0))
    assert len(set(lengths)) > 1  # Some environments wait for the others.
  for recording in episode_records.record(evaluator, learned):
    assert types.FLIGHT not in recording.sources


def test_an_interrupted_video_leaves_no_file(made, tmp_path, monkeypatch):
  path = tmp_path / 'v.webm'

  def stop(*args):
    assert [x.name for x in tmp_path.iterdir()] == ['.v.webm']
    raise KeyboardInterrupt

  monkeypatch.setattr(control_view.ControlView, 'last_frame', stop)
  with pytest.raises(KeyboardInterrupt):
    episode_records.play(*made, seed=5, video=str(path))
  assert not list(tmp_path.iterdir())


def test_a_film_ends_although_the_episode_does_not(made):
  agent, learned = made
  environment = minigrid.MiniGrid(_NAME, seed=0, no_goal=True)
  environment._env.max_steps = 2_000
  environments.register('endless', lambda seed: environment)
  settings = {'suffix': '.gif', 'seed': 5, 'max_frames': 3}
  film = episode_records.film(agent.named('endless'), learned, **settings)
  assert Image.open(io.BytesIO(film)).n_frames <= 3
  assert environment._env.step_count < 1_000


def test_slow_steps_do_not_delay_a_stop(made, monkeypatch):
  agent, learned = made
  stops = []
  for seconds in (0, 1000):
    monkeypatch.setattr(evaluator_lib, '_SECONDS_TO_STOP', seconds)
    evaluator, steps = Evaluator(agent, episodes=2, seed=5), []
    rows = evaluator.run(
      learned,
      should_stop=lambda: True,
      on_step=lambda *_, steps=steps: steps.append(1),
    )
    stops.append((len(rows), len(steps)))
  assert stops[0] == (0, 1) != stops[1]


def test_an_agent_without_flights_starts_none():
  agent = assembly.Agent(config_lib.R2D2Config(), assembly.spec_by_name(_NAME))
  with pytest.raises(ValueError, match='trained with flights'):
    Evaluator(agent, episodes=2, seed=5, flights=True)
  with pytest.raises(ValueError, match='episodes=0 must be positive'):
    Evaluator(agent, episodes=0, seed=5)


def test_the_behavior_in_control_selected_the_action(made):
  agent, learned = made
  evaluator = Evaluator(agent, episodes=3, seed=5, epsilon=0.8, flights=True)
  seen = set()

  def on_step(step, going):
    actor = evaluator.actor
    for source, behavior, action in zip(
      actor.sources, actor.in_control, evaluator.actions, strict=True
    ):
      if source != types.OWN:
        assert behavior == action
        seen.add((int(source), int(behavior)))

  evaluator.run(learned, on_step=on_step)
  extra, flight = types.EXTRA, types.FLIGHT
  assert seen == {(extra, 1), (extra, 2), (flight, 0), (flight, 1)}
