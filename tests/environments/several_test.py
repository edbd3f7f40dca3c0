"""Tests runs that play several environments: `env=A,B`."""

import numpy as np
import pytest

from bt_acme import assembly, environments
from bt_acme.config import run as run_config

_A = 'MiniGrid-Empty-5x5-v0'
_B = 'MiniGrid-DoorKey-5x5-v0'


def test_environments_rotate_across_processes():
  names = f'{_A},{_B}'
  assert [environments.name_of(names, i) for i in range(4)] == [_A, _B, _A, _B]
  together = environments.make_vector(names, 4, seed=5)
  apart = environments.make_vector(names, 2, seed=5, first_environment=1)
  alone = environments.make(_B, seed=environments.seed_of(5, 1))
  first = together.reset().observation
  np.testing.assert_array_equal(first[1:3], apart.reset().observation)
  np.testing.assert_array_equal(first[1], alone.reset().observation)
  assert (first[0] != first[1]).any()


def test_the_spec_of_several_environments():
  spec = assembly.spec_by_name(f'{_A},{_B}')
  assert spec == assembly.spec_by_name(_B)._replace(name=f'{_A},{_B}')


@pytest.mark.parametrize(
  'names, wrong',
  [
    (f'{_A},MiniGrid-Emty-5x5-v0', 'MiniGrid-Empty-5x5-v0'),
    (f'{_A},', "env='' is unknown"),
    (f'{_A},Chain-7', r"env='.*': Chain-7 has observations .* and 2 actions"),
  ],
)
def test_the_error_names_the_wrong_environment(names, wrong):
  with pytest.raises(ValueError, match=wrong):
    assembly.spec_by_name(names)


def test_make_refuses_a_list():
  with pytest.raises(ValueError, match='2 environments.*Choose one'):
    environments.make(f'{_A},{_B}', seed=0)


@pytest.mark.parametrize(
  'settings, wrong',
  [
    ({'num_actors': 1, 'envs_per_actor': 2}, 'envs_per_actor=2'),
    ({'evaluation_episodes': 2}, 'evaluation_episodes=2'),
  ],
)
def test_each_environment_is_played_and_evaluated(settings, wrong):
  with pytest.raises(ValueError, match=f'lists 3 environments.*{wrong}'):
    run_config.RunConfig(env=f'{_A},{_B},{_A}', **settings)
