"""Tests that flags override a preset, which overrides the defaults."""

import runpy

import jax
import pytest
from absl import flags
from absl.testing import flagsaver

from bt_acme.cli import training
from tests.launch import scripts


@flagsaver.flagsaver
@pytest.mark.parametrize('launch_type', ['local_mt', 'local_mp'])
def test_flags_override_the_preset_which_overrides_the_defaults(
  monkeypatch, launch_type
):
  updates = []
  monkeypatch.setattr(jax.config, 'update', lambda *args: updates.append(args))
  settings_class = runpy.run_path(scripts.path_of('run_r2d2'))['Settings']
  training.define(settings_class)
  given = f'--lp_launch_type={launch_type} --preset=minigrid --lstm_size=512'
  flags.FLAGS(['run', *given.split()])
  settings = training.read(settings_class)
  assert settings.network.lstm_size == 512
  assert settings.network.head_size == 64
  assert settings.acting.epsilon_base == 0.4
  # With separate processes, the accelerator is left to them.
  cpu = [('jax_platforms', 'cpu')]
  assert updates == (cpu if launch_type == 'local_mp' else [])
