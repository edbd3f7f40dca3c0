"""Tests `Chain`, a row of cells with one action per direction."""

import pytest

from bt_acme import environments


def test_moving_forward_and_backward():
  environment = environments.make('Chain-49', seed=0)
  seen = [environment.reset().observation.tobytes()]
  seen += [environment.step(1).observation.tobytes() for _ in range(48)]
  assert len(set(seen)) == 49 and environment.agent_cell() == 48
  timesteps = [environment.step(action) for action in (1, 0, *[1] * 10)]
  assert timesteps[0].observation.tobytes() == seen[48]
  assert timesteps[1].observation.tobytes() == seen[47]
  last = timesteps[-1]
  assert last.last() and last.discount == 1 and last.reward == 0
  assert environment.step(0).first() and environment.agent_cell() == 0
  assert environment.step(0).observation.tobytes() == seen[0]


def _actions_ahead(environment, cells):
  """Finds the forward action of each cell but the last by trial."""
  found = []
  while len(found) < cells - 1:
    environment.reset()
    for action in found:
      environment.step(action)
    environment.step(1)
    found.append(1 if environment.agent_cell() == len(found) + 1 else 0)
  return found


@pytest.mark.parametrize(
  'name, cells, side, steps',
  [
    ('Chain-2', 2, 7, 2),
    ('Chain-49:random_actions=3', 49, 7, 60),
    ('Chain-50:random_actions', 50, 8, 61),
  ],
)
def test_observations_of_cells_are_distinct(name, cells, side, steps):
  environment = environments.make(name, seed=0)
  assert environment.observation_spec().shape == (side, side, 3)
  ahead = _actions_ahead(environment, cells)
  timesteps = [environment.reset(), *map(environment.step, ahead)]
  assert len({t.observation.tobytes() for t in timesteps}) == cells
  assert environment.agent_cell() == cells - 1
  timesteps += [environment.step(0) for _ in range(steps - cells + 1)]
  assert [t.last() for t in timesteps] == [False] * steps + [True]


def test_random_actions_depend_on_the_name_and_not_on_the_seed():
  mappings = [
    _actions_ahead(environments.make(name, seed=seed), 49)
    for name in ('Chain-49:random_actions', 'Chain-49:random_actions=1')
    for seed in (0, 1)
  ]
  assert mappings[0] == mappings[1] != mappings[2] == mappings[3]
  # So repeating one action does not traverse the chain.
  assert all(15 < sum(mapping) < 33 for mapping in mappings)
