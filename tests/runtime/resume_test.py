"""The launch script resumes a run of an earlier version."""

import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

_ROOT = pathlib.Path(__file__).parents[2]
_OLD_RUN = _ROOT / 'tests' / 'data' / 'run_of_0_1_0'


def test_a_run_of_0_1_0_resumes(tmp_path):
  workdir = tmp_path / 'run'
  shutil.copytree(_OLD_RUN, workdir)
  identity = json.loads((workdir / 'config.json').read_text())
  settings = {
    **identity['run'],
    **{k: v for group in identity['config'].values() for k, v in group.items()},
    'max_actor_steps': 700,
    'num_evaluators': 0,
    'workdir': workdir,
  }
  done = subprocess.run(
    [
      sys.executable,
      _ROOT / 'launch' / 'run_ngu.py',
      *(f'--{name}={value}' for name, value in settings.items()),
    ],
    env={**os.environ, 'PYTHONPATH': str(_ROOT)},
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert done.returncode == 0, done.stderr
  assert done.stdout.startswith('Resuming NGUConfig')
  values = json.loads(
    (workdir / 'checkpoints' / 'checkpoint-2' / 'values.json').read_text()
  )['values']
  # The old run had taken 600 actor steps and 792 learner steps.
  assert 700 <= values['counts']['actor_steps'] < 702
  assert values['counts']['learner_steps'] > 792
  seen = sum(
    statistics['error_count'][0]
    for statistics in values['learner']['statistics'].values()
  )
  assert seen >= 700
  with (workdir / 'logs' / 'actor' / 'logs.csv').open() as file:
    steps = [int(row['actor_steps'] or 0) for row in csv.DictReader(file)]
  assert steps == sorted(steps) and steps[9] <= 600 <= steps[10]
  card = json.loads((workdir / 'behavior' / 'behavior.json').read_text())
  assert card['actor_steps'] == values['counts']['actor_steps']
  assert json.loads((workdir / 'completed.json').read_text()) == {
    'max_actor_steps': 700
  }
  assert json.loads((workdir / 'config.json').read_text()) == identity
