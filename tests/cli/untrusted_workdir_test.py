"""Tests that an invalid workdir fails with one line, using little memory."""

import pathlib
import shutil

import pytest

from bt_acme.cli import evaluation
from tests import untrusted_test as hostile
from tests.runtime import round_trips

_RUN = pathlib.Path(__file__).parents[1] / 'data' / 'run_of_0_1_0'


@pytest.fixture(name='folder')
def copy_run(tmp_path):
  """Returns the workdir of a run, with a checkpoint."""
  return shutil.copytree(_RUN, tmp_path / 'run')


def load(folder):
  return evaluation.load(evaluation.EvaluationConfig(workdir=str(folder)))


def test_a_valid_workdir_is_loaded(folder):
  assert load(folder).actor_steps == 600


def edit(folder, change):
  round_trips.edit(folder / 'config.json', change)


def values(folder, **changes):
  path = folder / 'checkpoints' / 'checkpoint-1' / 'values.json'
  round_trips.edit(path, lambda record: record['values'].update(changes))


@pytest.mark.parametrize(
  'forge',
  [
    lambda f: (f / 'config.json').write_text('[' * 100_000),
    lambda f: (f / 'config.json').write_text('["agent", "run", "config"]'),
    lambda f: edit(f, lambda r: r.update(agent='DQN')),
    lambda f: edit(f, lambda r: r.update(run=[1])),
    lambda f: edit(f, lambda r: r['run'].update(colour='red')),
    lambda f: edit(f, lambda r: r['run'].update(env='os:system')),
    lambda f: edit(f, lambda r: r['config'].update(network=3)),
    lambda f: edit(f, lambda r: r['config']['network'].update(lstm_size=10**8)),
    lambda f: edit(f, lambda r: r.update(behaviors=3)),
    lambda f: edit(f, lambda r: r.update(behaviors=[3])),
    lambda f: edit(f, lambda r: r.update(behaviors={'behavior': 3})),
    lambda f: values(f, learner=3),
    lambda f: values(f, learner={'statistics': {'0': {'error_mean': ['x']}}}),
    lambda f: values(f, counts={'actor_steps': 1e400}),
  ],
)
def test_a_forged_record_gives_a_one_line_error(folder, forge):
  forge(folder)
  with hostile.one_line_error(megabytes=256) as info:
    load(folder)
  assert str(folder) in str(info.value)
