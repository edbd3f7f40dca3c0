"""What the builder takes, refuses and drops."""

import numpy as np
import pytest

from bt_acme.replay import builder as builder_lib
from tests.replay import episodes

P, T = episodes.PERIOD, episodes.LENGTH


def test_reset_drops_an_unfinished_episode():
  config, shapes = episodes.make_config(), episodes.make_shapes()
  builder = builder_lib.SequenceBuilder(config, shapes)
  rng = np.random.default_rng(2)
  unfinished = episodes.make_episode(rng, 2 * T + 2, shapes)
  for step in unfinished.steps:
    builder.add(step)
  builder.reset()
  episode = episodes.make_episode(rng, 2, shapes)
  episodes.assert_is_built(episode, builder, config, shapes)


def test_episode_without_a_step_writes_nothing():
  config, shapes = episodes.make_config(), episodes.make_shapes()
  builder = builder_lib.SequenceBuilder(config, shapes)
  episode = episodes.make_episode(np.random.default_rng(0), 1, shapes)
  assert builder.end_episode(*episode.final) is None


def test_observations_that_are_no_stacks_are_refused():
  config, shapes = episodes.make_config(), episodes.make_shapes(num_stacked=4)
  builder = builder_lib.SequenceBuilder(config, shapes)
  rng = np.random.default_rng(0)
  episode = episodes.make_episode(rng, P + 1, shapes)
  unrelated = rng.integers(256, size=(5, 6, 4), dtype=np.uint8)
  for step in episode.steps[:-1]:
    builder.add(step)
  with pytest.raises(ValueError, match='num_stacked=4'):
    builder.add(episode.steps[-1]._replace(observation=unrelated))


@pytest.mark.parametrize(
  'observation', (np.zeros((5, 6, 3), np.uint8), np.zeros((5, 6, 4)))
)
def test_observation_of_another_kind_is_refused(observation):
  shapes = episodes.make_shapes()
  builder = builder_lib.SequenceBuilder(episodes.make_config(), shapes)
  step = episodes.make_episode(np.random.default_rng(0), 1, shapes).steps[0]
  with pytest.raises(ValueError, match=r'uint8 \(5, 6, 4\)'):
    builder.add(step._replace(observation=observation))
