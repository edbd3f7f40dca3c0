"""Runs Python programs in processes of their own."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]  # The checkout.
_FOUR_DEVICES = (
  '--xla_force_host_platform_device_count=4'
  ' --xla_backend_optimization_level=0'
  ' --xla_cpu_parallel_codegen_split_count=1'
)


def run(*arguments, **options):
  """Runs Python with these arguments; returns the finished process."""
  command = [sys.executable, *arguments]
  return subprocess.run(command, capture_output=True, text=True, **options)


def check(*arguments, **options):
  """Runs Python like `run`; fails if it does."""
  done = run(*arguments, **options)
  assert done.returncode == 0, done.stdout + done.stderr
  return done


def run_on_four_devices(code):
  """Runs code in a process with four simulated devices."""
  check('-c', code, env={**os.environ, 'XLA_FLAGS': _FOUR_DEVICES})
