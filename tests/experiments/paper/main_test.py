"""Tests of the command line `python -m experiments.paper`."""

import json
import os
import pathlib
import signal
import sys

import pytest

from experiments import launching
from experiments.harness import dataset, runs
from experiments.paper import __main__ as paper
from experiments.paper import captions, required_runs, scales
from tests.experiments.harness import fakes
from tests.launch import scripts

_ENV = 'MiniGrid-FourRooms-v0:fixed'


@pytest.fixture(name='run')
def make_run(tmp_path, capsys, monkeypatch):
  """Returns a function that executes a command whose runs are fakes."""

  def run(*arguments, kind='ok'):
    monkeypatch.setattr(launching, 'command_of', fakes.command_of(kind))
    monkeypatch.setenv('JAX_PLATFORMS', 'cpu')  # A machine without a GPU.
    folder = f'--folder={tmp_path / "folder"}'
    code = paper.main([folder, '--slots=cpu:1', *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err

  run.folder = tmp_path / 'folder'
  return run


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (['tabel3'], "did you mean 'table3'"),
    (['table3', 'plan'], "artifact='plan' is unknown"),
    (['table3', '--scale=labtop'], "did you mean 'laptop'"),
    (['table3', f'--games={_ENV}s'], f"did you mean '{_ENV}'"),
    (['table3', '--arms=bt_ngi'], "did you mean 'bt_ngu'"),
    (['table9', '--arms=bt_rnd'], 'select none of the runs of table9. Omit'),
    (['table3', '--seeds=1,1'], 'distinct integers'),
    (['table3', '--shard=3/2'], 'shard'),
    (['table3', '--format=mdd'], "did you mean 'md'"),
    (['table3', '--pretraining=share'], "did you mean 'shared'"),
    (['table3', '--set=lstm_sise=3'], "did you mean 'lstm_size'"),
    (['table3', '--set=lstm_size'], 'must have the form'),
    (['table3', '--nonsense'], 'see --help for all'),
    (['status'], 'contains no runs'),
    (['status', 'table3'], 'Remove the artifact'),
    (['render', 'table3', '--arms=r2d2'], 'Use --seeds, --games'),
    (['table3', '--hours=nan'], 'must be positive'),
    (['table3', f'--folder=/tmp/{"x" * 300}'], 'File name too long'),
    (['work', '--folder=/dev/null/x'], "'/dev/null/x'. Choose another"),
    (['table3', '--slots=cpu:1,gpu:7/2'], 'slots=gpu:7: JAX does not find'),
  ],
)
def test_mistakes_are_reported_in_one_line_and_write_nothing(
  run, arguments, message
):
  code, out, err = run(*arguments)
  assert code == 2 and not out
  assert err.startswith('error: ') and err.count('\n') == 1
  assert message in err
  assert not run.folder.exists()


def test_a_closed_pipe_is_not_an_error(monkeypatch):
  reading, writing = os.pipe()
  os.close(reading)
  with open(writing, 'w') as pipe:  # At the end, all output is written.
    monkeypatch.setattr(sys, 'stdout', pipe)
    assert paper.main(['list']) == 128 + signal.SIGPIPE


@pytest.mark.parametrize('scale', list(scales.SCALES))
def test_a_plan_starts_nothing(run, scale):
  code, out, _ = run('plan', 'table3', f'--scale={scale}')
  rows = {line.split('  ')[0]: line.split() for line in out.splitlines()}
  request = required_runs.Request(('table3',))
  specs = required_runs.declared(request, scales.get(scale))
  assert code == 0 and not run.folder.exists()
  assert int(rows['all'][1]) == int(rows['all'][2]) == len(specs)
  steps = sum(spec.budget_steps for spec in specs)
  assert rows['all'][3] == f'{steps:,}'


def test_an_artifact_is_planned_executed_gathered_and_extended(run):
  part = (f'--games={_ENV}', '--seeds=0', '--arms=r2d2,bt_ngu')
  code, out, err = run('table3', *part, '--format=md')
  assert 'all              3     3' in out
  assert '3 done, 0 left' in out
  assert 'No final evaluation of 50 episodes: ' in out  # The runs are fakes.
  data = dataset.read(run.folder)
  assert [run.status for run in data.runs] == [dataset.DONE] * 3
  assert {run.scale for run in data.runs} == {'smoke'}
  assert code == 0 and not err
  assert (run.folder / 'results' / 'table3.md').exists()
  first = (run.folder / 'report.md').read_text()
  assert f'table3 --scale=smoke --seeds=0 --games={_ENV}' in first
  before = fakes.executions(run.folder)
  # Another seed adds its runs; existing runs are not repeated.
  _, out, _ = run('work', 'table3', *part[:1], '--seeds=0,1', *part[2:])
  assert '6 done, 0 left' in out
  assert len(fakes.executions(run.folder)) == len(before) + 3
  _, out, _ = run('status')
  assert out.splitlines()[-1].split() == ['all', '6', '0', '0', '0']
  # The data cover all requests.
  run('gather')
  assert len(dataset.read(run.folder).runs) == 6
  # Rendering one artifact does not change the report; rendering all does.
  run('render', 'table3')
  assert (run.folder / 'report.md').read_text() == first
  code, out, _ = run('render')
  assert code == 0 and out.endswith(f'report: {run.folder}/report.md\n')
  assert '--seeds=0,1' in (run.folder / 'report.md').read_text()
  verdicts = (run.folder / 'results' / 'claims.csv').read_text()
  assert all(f'\nC{i},' in verdicts for i in range(1, 23))


def test_a_failed_run_is_shown_as_failed(run):
  part = (f'--games={_ENV}', '--seeds=0', '--arms=bt_ngu')
  code, out, _ = run('work', 'table3', *part, kind='fails')
  assert code == 1 and '1 failed, 1 blocked by a failed run' in out
  _, out, _ = run('status')
  assert 'has failed 3 times; exit code 1' in out and 'line 99' in out
  _, out, _ = run('gather')
  statuses = [run.status for run in dataset.read(run.folder).runs]
  assert statuses == [dataset.FAILED, dataset.WAITING]
  assert 'has failed 3 times' in out and 'Not done (waiting): ' in out


def test_invalid_flags_and_a_time_limit_stop_the_work(run):
  part = (f'--games={_ENV}', '--seeds=0', '--format=md')
  code, _, err = run('table3', *part, kind='wrong')
  assert code == 2 and 'nonsense=1 is not a flag' in err
  assert not (run.folder / 'runs.csv').exists()
  code, out, _ = run('table3', *part, '--hours=1e-6', kind='waits')
  assert code == 75 and ' 0 left' not in out
  assert 'waiting' in (run.folder / 'report.md').read_text()


def test_a_directory_with_other_settings_is_not_changed(run):
  run('work', 'table3', f'--games={_ENV}', '--seeds=0', '--arms=r2d2')
  before = scripts.contents(run.folder)
  changes = ('--scale=laptop', '--set=learning_rate=0.1')
  for change in (*changes, '--pretraining=shared'):
    code, _, err = run('work', 'table3', change)
    assert code == 2 and 'was created with other settings' in err
    assert change.rpartition('=')[2] in err
    assert scripts.contents(run.folder) == before


@pytest.mark.parametrize(
  ('kind', 'num_policies', 'words'),
  [('shared', 1, 'once for all seeds'), ('per_seed', 2, 'for each seed')],
)
def test_seeds_share_a_policy_or_have_their_own(run, kind, num_policies, words):
  flag = f'--pretraining={kind}'
  part = (f'--games={_ENV}', '--seeds=0,1', '--arms=bt_ngu', '--format=md')
  with fakes.worker_in_this_process():
    code, out, _ = run('table3', *part, flag)
  title = f'Pre-training is {kind.replace("_", " ")}: '
  assert code == 0 and title in out
  runs = dataset.read(run.folder).runs
  policies = {r.run_id for r in runs if r.stage == 'pretraining'}
  used = {r.seed: r.pretraining_run for r in runs if r.stage == 'transfer'}
  assert set(used) == {0, 1} and set(used.values()) == policies
  assert len(policies) == num_policies
  assert f'{words}.' in captions.made_of(runs, [2])
  _, out, _ = run('status', flag)
  assert title in out
  report = (run.folder / 'report.md').read_text()
  assert title in report
  assert (flag in report) == (kind == 'shared')  # The default is per_seed.


def test_a_directory_of_another_version_is_not_changed(run):
  run('work', 'fig7')
  mark = run.folder / 'folder.json'
  content = json.loads(mark.read_text())
  # Directories of early versions have the default pre-training of their scale.
  assert content.pop('pretraining') == 'per_seed'
  mark.write_text(json.dumps(content))
  assert run('status')[0] == 0
  code, _, err = run('status', '--pretraining=shared')
  assert code == 2 and "pretraining='per_seed' instead of 'shared'" in err
  mark.write_text(json.dumps({**content, 'version': '0'}))
  before = scripts.contents(run.folder)
  code, _, err = run('table3')
  assert code == 2 and "version='0' instead of" in err
  assert scripts.contents(run.folder) == before


def test_rendering_requires_gathering(run):
  run.folder.mkdir()
  (run.folder / '.folder.json.partial-0').touch()  # Of another worker.
  assert run('work', 'fig7')[0] == 0
  code, out, err = run('render')
  assert code == 2 and not out and 'runs.csv cannot be read' in err
  assert 'Run `gather`' in err and not (run.folder / 'report.md').exists()


@pytest.mark.parametrize('damage', ['folder.json', 'requests/*.json'])
def test_a_damaged_file_is_reported_with_advice(run, damage):
  run('work', 'fig7')
  (path,) = run.folder.glob(damage)
  path.write_text('{')
  code, _, err = run('status')
  assert code == 2 and f'{path} is damaged. ' in err


@pytest.mark.parametrize('name', ['', 'thesis.tex'])
def test_a_folder_that_is_in_use_is_rejected(run, name):
  path = run.folder / name
  path.parent.mkdir(exist_ok=True)
  path.write_text('')
  code, _, err = run('table3')
  assert code == 2 and 'is a file, or is not empty' in err


@pytest.mark.slow
def test_a_real_run(tmp_path):
  folder = pathlib.Path(tmp_path) / 'folder'
  part = ('--games=MiniGrid-Empty-Random-6x6-v0', '--seeds=0', '--arms=r2d2')
  for command in (('work', 'table3', '--slots=cpu:1', *part), ('gather',)):
    assert paper.main([*command, f'--folder={folder}']) == 0
  data = dataset.read(folder)
  (run,) = data.runs
  assert run.status == dataset.DONE and run.device.startswith('cpu')
  assert (run.attempts, run.exit_code) == (1, 0)
  points = fakes.scores_of(data, run.run_id, dataset.EVALUATOR)
  assert [point.actor_steps for point in points] == [*range(0, 1_501, 300)]
  (final,) = fakes.scores_of(data, run.run_id, dataset.FINAL)
  assert final.episodes == 50


def test_parts_share_the_transfer_runs_and_keep_their_evaluations():
  request = required_runs.Request(('table3',))
  specs = required_runs.declared(request, scales.get('gpu'))
  parts = [paper._part(specs, number, 4) for number in (1, 2, 3, 4)]
  ids = [spec.id for part in parts for spec in part]
  assert sorted(ids) == sorted(spec.id for spec in specs)
  counts = [sum(x.stage == runs.TRANSFER for x in part) for part in parts]
  assert max(counts) - min(counts) <= 1 < min(counts)
  for part in parts:
    own = {spec.id for spec in part}
    finals = [x for x in part if x.stage == runs.FINAL_EVALUATION]
    assert finals and all(x.needs[0].run.id in own for x in finals)
