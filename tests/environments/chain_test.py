"""A chain is a row of cells, which each action walks in one direction."""

import pytest

from bt_acme import environments


def test_a_chain_is_walked_back_and_ahead():
  world = environments.make('Chain-49', seed=0)
  seen = [world.reset().observation.tobytes()]
  seen += [world.step(1).observation.tobytes() for _ in range(48)]
  assert len(set(seen)) == 49 and world.agent_cell() == 48
  timesteps = [world.step(action) for action in (1, 0, *[1] * 10)]
  assert timesteps[0].observation.tobytes() == seen[48]
  assert timesteps[1].observation.tobytes() == seen[47]
  last = timesteps[-1]
  assert last.last() and last.discount == 1 and last.reward == 0
  assert world.step(0).first() and world.agent_cell() == 0
  assert world.step(0).observation.tobytes() == seen[0]


@pytest.mark.parametrize(
  'name, cells, side, steps',
  [
    ('Chain-2', 2, 7, 2),
    ('Chain-49:random_actions=3', 49, 7, 60),
    ('Chain-50:random_actions', 50, 8, 61),
  ],
)
def test_every_cell_of_a_chain_looks_different(name, cells, side, steps):
  world = environments.make(name, seed=0)
  assert world.observation_spec().shape == (side, side, 3)
  ahead = _actions_ahead(world, cells)
  timesteps = [world.reset(), *(world.step(action) for action in ahead)]
  assert len({t.observation.tobytes() for t in timesteps}) == cells
  assert world.agent_cell() == cells - 1
  timesteps += [world.step(0) for _ in range(steps - cells + 1)]
  assert [t.last() for t in timesteps] == [False] * steps + [True]


def _actions_ahead(world, cells):
  """The action that leads ahead from each cell but the last, by trying."""
  found = []
  while len(found) < cells - 1:
    world.reset()
    for action in found:
      world.step(action)
    world.step(1)
    found.append(1 if world.agent_cell() == len(found) + 1 else 0)
  return found


def test_random_actions_are_those_of_the_name_and_not_of_the_seed():
  mappings = {
    (name, seed): _actions_ahead(environments.make(name, seed=seed), 49)
    for name in ('Chain-49:random_actions', 'Chain-49:random_actions=1')
    for seed in (0, 1)
  }
  by_name = list(mappings.values())
  assert by_name[0] == by_name[1] != by_name[2] == by_name[3]
  assert all(15 < sum(mapping) < 33 for mapping in by_name)


def test_no_constant_action_walks_a_chain_of_random_actions():
  for action in (0, 1):
    world = environments.make('Chain-49:random_actions', seed=0)
    world.reset()
    cells = set()
    for _ in range(60):
      world.step(action)
      cells.add(world.agent_cell())
    assert len(cells) < 12
