"""Tests that invalid settings of a run are rejected."""

import pytest

from bt_acme.config import run as run_config


@pytest.mark.parametrize(
  'settings, message',
  [
    ({'seed': 2**32}, 'seed=4294967296 must lie in'),
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
    (
      {'lp_launch_type': 'in_process', 'inference': 'server'},
      "inference='server' has no effect with lp_launch_type='in_process'",
    ),
    ({'replay_port': 7000}, 'Add --open_ports, or remove replay_port'),
    ({'lp_launch_type': 'ray'}, "ray_address='' must be HOST:PORT"),
    ({'ray_address': 'auto'}, 'no effect with lp_launch_type='),
    (
      {'lp_launch_type': 'ray', 'ray_address': 'auto', 'placement': 'lerner:'},
      "did you mean 'learner'",
    ),
    ({'inference': 'server', 'envs_per_actor': 3}, 'envs_per_actor=3 must be'),
  ],
)
def test_invalid_settings(settings, message):
  with pytest.raises(ValueError, match=message):
    run_config.RunConfig(**settings)
