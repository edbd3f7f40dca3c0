"""Launch scripts without nodes: --lp_launch_type=in_process, on any Python."""

import json
import pathlib
import shutil
import signal

import numpy as np
import pytest

import bt_acme
from tests.launch import scripts

IN_PROCESS = '--lp_launch_type=in_process'
_STACK = ('acme', 'launchpad', 'reverb', 'tensorflow')
# Runs a script, and prints the modules of the stack that it has loaded.
_RUN = f"""
import runpy, sys
sys.argv = sys.argv[1:]
try:
  runpy.run_path(sys.argv[0], run_name='__main__')
finally:
  print('loaded', *(set({_STACK}) & set(sys.modules)))
"""
# Limits the size of files, in bytes, but does not damage the tests' cache.
_LIMIT = """
import jax, resource
jax.config.update('jax_enable_compilation_cache', False)
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
"""


@pytest.fixture(name='run', scope='module')
def make_run(tmp_path_factory):
  """Returns a function that runs a script without the imports of the stack."""
  server = scripts.Server(imports='import bt_acme, rlax\n')
  path = tmp_path_factory.mktemp('program') / 'run.py'

  def run(script, *arguments, largest_file=None):
    limit = '' if largest_file is None else _LIMIT.format(largest_file)
    path.write_text(limit + _RUN)
    code, output, errors = server.run_file(
      path, scripts.path_of(script), *arguments
    )
    assert output.endswith('loaded\n'), output
    return code, output[: -len('loaded\n')], errors

  yield run
  server.close()


@pytest.fixture(name='train', scope='module')
def make_train(run):
  """Returns a function that runs a small run."""

  def train(script, workdir, *arguments, **options):
    settings = (*scripts.TINY, IN_PROCESS, f'--workdir={workdir}')
    return run(script, *settings, *arguments, **options)

  return train


@pytest.mark.parametrize(
  'script, argument, largest_file',
  [
    ('run_ngu', IN_PROCESS, 1_000),  # Too small for the settings.
    ('run_continual', '--bank={0}/bank', 20_000),  # And for a checkpoint.
  ],
)
def test_a_full_disk_is_reported_in_one_line(
  train, tmp_path, script, argument, largest_file
):
  arguments = argument.format(tmp_path), '--max_actor_steps=200'
  code, _, errors = train(
    script, tmp_path / 'run', *arguments, largest_file=largest_file
  )
  assert code == 1
  assert 'Traceback' not in errors and '\nerror: ' in f'\n{errors}', errors
  assert 'File too large. Free disk space, then' in errors.splitlines()[-1]


@pytest.fixture(name='ngu', scope='module')
def run_ngu(tmp_path_factory, train):
  """Returns a run that was interrupted and resumed."""
  workdir = tmp_path_factory.mktemp('in_process') / 'ngu'
  # The run cannot complete before it is interrupted.
  arguments = (*scripts.NGU, IN_PROCESS, '--max_actor_steps=10000000')
  with scripts.Script('run_ngu', workdir, *arguments) as script:
    scripts.wait_until(lambda: scripts.rows(workdir, 'learner'), script.process)
    script.process.send_signal(signal.SIGINT)
    interrupted = script.end(60)  # 15 s on an idle machine.
  budget = scripts.checkpoint(workdir)['counts']['actor_steps'] + 600
  arguments = (*arguments[:-1], f'--max_actor_steps={budget}')
  return workdir, interrupted, budget, train('run_ngu', workdir, *arguments)


def test_ctrl_c_saves_and_the_same_command_resumes(ngu):
  workdir, interrupted, budget, resumed = ngu
  assert interrupted[0] == 130, interrupted
  assert 'Rerun the same command to resume.' in interrupted[1]
  assert 'Traceback' not in interrupted[2]
  assert resumed[0] == 0, resumed
  assert resumed[1].startswith('Resuming NGUConfig')
  steps = [int(row['actor_steps']) for row in scripts.rows(workdir, 'actor')]
  assert steps == sorted(steps) and budget - 500 < steps[-1] <= budget + 3
  record = json.loads((workdir / 'config.json').read_text())
  assert record['began_with']['evaluation_episodes'] == 2


@pytest.mark.parametrize('script', ['run_ngu', 'run_continual', 'evaluate'])
def test_ctrl_c_before_the_run_ends_the_script(tmp_path, script):
  is_imported = 'jaxlib' if script == 'run_ngu' else 'libopenblas'
  with scripts.Script(script, tmp_path / 'run', settings=()) as program:
    maps = pathlib.Path(f'/proc/{program.process.pid}/maps')
    scripts.wait_until(lambda: is_imported in maps.read_text(), program.process)
    program.process.send_signal(signal.SIGINT)
    code, output, errors = program.end(60)
  assert code == 130, errors
  assert errors.strip().startswith('Stopped by Ctrl-C') and not output
  assert errors.count('\n') == 2


def test_run_continual_says_where_its_policies_are(train, tmp_path):
  bank = tmp_path / 'bank'
  for _ in range(2):  # Also if nothing remains to be learned.
    arguments = (f'--bank={bank}', '--max_actor_steps=100')
    code, output, errors = train('run_continual', tmp_path / 'run', *arguments)
    assert code == 0, errors
    assert output.endswith(f'Learned 1 task. {bank} contains the policies.\n')
  assert len(list(bank.iterdir())) == 1


def test_an_exported_behavior_is_only_reported_if_it_exists(
  ngu, train, tmp_path
):
  workdir, _, budget, resumed = ngu
  assert f'Behavior exported to {workdir}/behavior' in resumed[1]
  (workdir / 'behavior').rename(tmp_path / 'moved')
  arguments = (*scripts.NGU, f'--max_actor_steps={budget}')
  code, output, errors = train('run_ngu', workdir, *arguments)
  assert code == 0, errors
  *_, call = output.strip().partition(' Export it again: ')
  assert 'Behavior exported' not in output
  exported = eval(call, {'bt_acme': bt_acme})
  assert exported.folder == str(workdir / 'behavior')
  moved = bt_acme.load_behavior(tmp_path / 'moved')
  assert exported.params_sha256 == moved.params_sha256


def test_a_run_is_evaluated_like_its_exported_behavior(ngu, run):
  folder = ngu[0]
  loaded, behavior = bt_acme.load_run(folder), bt_acme.load_behavior(folder)
  np.testing.assert_equal(loaded.variables, behavior.variables)
  np.testing.assert_equal(loaded.statistics, behavior.statistics)
  code, output, errors = run('evaluate', f'--workdir={folder}', '--episodes=2')
  assert code == 0 and output, errors


def test_transfer_stores_the_behavior(ngu, train, tmp_path):
  workdir, behavior = tmp_path / 'bt', tmp_path / 'explorer'
  shutil.copytree(ngu[0] / 'behavior', behavior)
  code, _, errors = train(
    'run_bt',
    workdir,
    f'--behavior={behavior},action_repeat',
    '--max_actor_steps=400',
    '--evaluation_episodes=3',
  )
  assert code == 0, errors
  behavior.rename(tmp_path / 'moved')
  run = bt_acme.load_run(workdir)
  assert run.agent.behaviors[1].name == 'action_repeat'
  np.testing.assert_equal(
    run.agent.behaviors[0].variables, bt_acme.load_behavior(ngu[0]).variables
  )
  # The number of evaluation episodes stays as in the command.
  run.resume(600)
  _, counts = np.unique(run.evaluations['actor_steps'], return_counts=True)
  assert counts.tolist() == [3, 3, 3]
  # The command recognizes the behavior at its new path.
  code, output, errors = train(
    'run_bt',
    workdir,
    f'--behavior={tmp_path / "moved"},action_repeat',
    '--max_actor_steps=500',
  )
  assert code == 0, errors
  assert 'has completed its 600 actor steps' in output
  identity = json.loads((workdir / 'config.json').read_text())
  moved = str(tmp_path / 'moved')
  assert identity['behaviors'] == [moved, 'action_repeat']
  record = json.loads((workdir / 'provenance.json').read_text())
  assert record['params_sha256']['behaviors'] == [
    *(run.agent.behaviors[0].params_sha256, 'action_repeat')
  ]
  assert len(record['sessions']) == 2
  # Runs of earlier versions have no copy; they load the recorded directory.
  shutil.rmtree(workdir / 'behaviors')
  assert bt_acme.load_run(workdir).agent.behaviors[0].folder == moved
  run.export(moved)
  with pytest.raises(ValueError, match=f"'{moved}' is not the behavior"):
    bt_acme.load_run(workdir)
