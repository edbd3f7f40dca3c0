"""Tests that invalid settings of a run are rejected."""

import pytest

from bt_acme.config import run as run_config


@pytest.mark.parametrize(
  'settings, message',
  [
    ({'max_actor_steps': 0}, 'max_actor_steps=0 must be positive'),
    ({'num_actors': -1}, 'num_actors=-1 must be positive'),
    ({'envs_per_actor': 0}, 'envs_per_actor=0 must be positive'),
    ({'checkpoint_period': 0.0}, 'checkpoint_period=0.0 must be positive'),
    ({'seed': -1}, r'seed=-1 must lie in \[0, 4294967295'),
    ({'seed': 2**32}, 'seed=4294967296 must lie in'),
    ({'num_evaluators': -1}, 'num_evaluators=-1 must not be'),
    ({'replay_port': 65536}, 'replay_port=65536 must lie in'),
    ({'snapshot_steps': '10,x'}, 'must be integers separated by'),
    (
      {'snapshot_steps': '10,10'},
      "='10,10' must be positive and strictly incr",
    ),
    ({'snapshot_steps': '0,10'}, "='0,10' must be positive and strictly incr"),
    (
      {'snapshot_steps': '10,21', 'max_actor_steps': 20},
      "snapshot_steps='10,21' exceeds max_actor_steps=20, the end of the run",
    ),
    ({'max_restarts': -1}, 'max_restarts=-1 must not be'),
    ({'watchdog_seconds': 1.0}, 'watchdog_seconds=1.0 must be at least 10'),
    (
      {'lp_launch_type': 'in_process', 'max_restarts': 1},
      'max_restarts=1 applies to separate nodes, but lp_launch_type=',
    ),
    *(
      (
        {'lp_launch_type': 'in_process', **setting},
        'applies to separate nodes, but lp_launch_type=',
      )
      for setting in ({'inference': 'server'}, {'replay_port': 8000})
    ),
    ({'replay_port': 7000}, 'Add --open_ports, or remove replay_port'),
    ({'lp_launch_type': 'ray'}, "ray_address='' must be HOST:PORT"),
    ({'ray_address': 'auto'}, 'applies to a cluster, but lp_'),
    (
      {
        **{'lp_launch_type': 'ray', 'ray_address': 'auto'},
        'placement': 'lerner:num_gpus=1',
      },
      "did you mean 'learner'",
    ),
    ({'lp_launch_type': 'cloud'}, "lp_launch_type='cloud' is unknown"),
    ({'inference': 'gpu'}, "inference='gpu' is unknown"),
    ({'inference': 'server', 'envs_per_actor': 3}, 'envs_per_actor=3 must be'),
  ],
)
def test_invalid_settings(settings, message):
  with pytest.raises(ValueError, match=message):
    run_config.RunConfig(**settings)
