"""Tests that flags override a preset, which overrides the defaults."""

import os
import pathlib

from tests import python

_ROOT = pathlib.Path(__file__).parents[2]
_PROGRAM = """
import runpy
import jax
from absl import flags
from bt_acme.cli import training

script = runpy.run_path('launch/run_r2d2.py')
training.define(script['Settings'])
for launch_type in ('local_mt', 'local_mp'):
  flags.FLAGS(['run', f'--lp_launch_type={launch_type}', '--preset=minigrid',
    '--lstm_size=512'])
  settings = training.read(script['Settings'])
  print(jax.config.jax_platforms, settings.network.lstm_size,
    settings.network.head_size, settings.acting.epsilon_base)
"""


def test_flags_override_the_preset_which_overrides_the_defaults():
  environment = {k: v for k, v in os.environ.items() if k != 'JAX_PLATFORMS'}
  environment['PYTHONPATH'] = str(_ROOT)
  done = python.run('-c', _PROGRAM, env=environment, cwd=_ROOT)
  assert done.returncode == 0, done.stderr
  # With separate processes, the accelerator is left to them.
  assert done.stdout == 'None 512 64 0.4\ncpu 512 64 0.4\n'
