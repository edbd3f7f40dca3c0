"""Runs launch scripts, and reads the files in the workdirs of their runs."""

import csv
import json
import os
import subprocess
import sys
import time
import uuid

import numpy as np
import psutil

from tests import python

ENVIRONMENT = {**os.environ, 'PYTHONPATH': str(python.ROOT)}
TINY = (
  '--env=MiniGrid-Empty-5x5-v0',
  '--num_actors=1',
  '--envs_per_actor=4',
  '--torso_size=16',
  '--lstm_size=16',
  '--head_size=16',
  '--trace_length=8',
  '--sequence_period=4',
  '--batch_size=4',
  '--min_replay_size=4',
  '--max_replay_size=500',
  '--samples_per_insert=1',
  '--variable_update_period=8',
  '--evaluation_period=100000',
  '--evaluation_episodes=2',
)
NGU = ('--memory_capacity=100', '--embedding_size=8', '--rnd_size=8')

MARK = 'BT_ACME_TEST_MARK'
_STACK = 'import bt_acme, launchpad, rlax, bt_acme.agents\n'
# Reads requests, and runs the script of each in a fork with all imports done.
# Answers with the exit code, standard output and standard error.
_SERVER = """
import json, os, runpy, signal, sys, tempfile, time, traceback
from bt_acme.cli import evaluation, training

for line in sys.stdin:
  arguments, environment, seconds = json.loads(line)
  files = [tempfile.TemporaryFile('w+') for _ in range(2)]
  child = os.fork()
  if not child:
    for number, file in zip((1, 2), files):
      os.dup2(file.fileno(), number)
    code = 99
    os.environ.update(environment)
    try:
      sys.argv = arguments
      runpy.run_path(arguments[0], run_name='__main__')
    except SystemExit as end:
      code = end.code or 0
    except BaseException:
      traceback.print_exc()
    finally:
      sys.stdout.flush()
      sys.stderr.flush()
      os._exit(code)
  # Not by an alarm of the child, which Launchpad would cancel.
  deadline = time.monotonic() + seconds
  ended, status = 0, 0
  while not ended:
    if time.monotonic() > deadline:
      os.kill(child, signal.SIGKILL)
    time.sleep(0.02)
    ended, status = os.waitpid(child, os.WNOHANG)
  for file in files:
    file.seek(0)
  print(json.dumps([os.waitstatus_to_exitcode(status),
    *(file.read() for file in files)]), flush=True)
"""


def path_of(script):
  """Returns the path of a launch script."""
  return str(python.ROOT / 'launch' / f'{script}.py')


class Program:
  """A running program; all of its processes inherit a mark."""

  def __init__(self, command, environment=None, capture=True):
    pipe = subprocess.PIPE if capture else subprocess.DEVNULL
    self.mark = uuid.uuid4().hex
    self.process = subprocess.Popen(
      command,
      env={**ENVIRONMENT, **(environment or {}), MARK: self.mark},
      stdout=pipe,
      stderr=pipe,
      text=True,
    )

  def __enter__(self):
    return self

  def __exit__(self, *exc_info):
    self.process.kill()
    self.process.wait()
    for process in self.survivors():
      process.kill()
    self.process.communicate()  # Closes the pipes.

  def end(self, seconds=200):
    """Waits for the end of all processes; returns code, output and errors."""
    output, errors = self.process.communicate(timeout=seconds)
    assert not self.survivors()
    return self.process.returncode, output, errors

  def survivors(self):
    """Returns the processes of the program that still run."""
    return processes_of(self.mark)


class Script(Program):
  """A running launch script, in a process like one that a user starts."""

  def __init__(
    self, script, workdir, *arguments, prefix=(), settings=TINY, **options
  ):
    command = [*prefix, sys.executable, path_of(script), *settings]
    super().__init__([*command, f'--workdir={workdir}', *arguments], **options)


class Server:
  """Runs scripts without repeating their imports.

  Args:
    imports: the first imports, in addition to those of all scripts.
  """

  def __init__(self, imports=_STACK):
    self.process = subprocess.Popen(
      [sys.executable, '-c', imports + _SERVER],
      env=ENVIRONMENT,
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
    )

  def train(self, script, workdir, *arguments):
    """Runs a launch script with the settings of a small run."""
    return self.run(script, *TINY, f'--workdir={workdir}', *arguments)

  def run(self, script, *arguments):
    """Runs a launch script."""
    return self.run_file(path_of(script), *arguments)

  def run_file(self, path, *arguments, seconds=200):
    """Runs a script to its end; returns code, standard output, standard error.

    Args:
      path: the path of the script.
      *arguments: the command-line arguments.
      seconds: the timeout, after which the script is killed.
    """
    mark = uuid.uuid4().hex
    request = [[str(path), *map(str, arguments)], {MARK: mark}, seconds]
    self.process.stdin.write(json.dumps(request) + '\n')
    self.process.stdin.flush()
    answer = json.loads(self.process.stdout.readline())
    assert not processes_of(mark)
    return answer

  def close(self):
    """Ends the server."""
    self.process.stdin.close()
    self.process.wait()
    self.process.stdout.close()


def processes_of(mark):
  """Returns the processes with a mark in their environment."""
  found = []
  for process in psutil.process_iter():
    try:
      if process.environ().get(MARK) == mark:
        found.append(process)
    except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
      continue
  return found


def wait_until(condition, process=None, seconds=150, pause=0.1, what=''):
  """Waits for a condition, which fails with `what`; returns the seconds."""
  start = time.monotonic()
  while not condition():
    if process is not None:
      assert process.poll() is None, process.communicate()
    assert time.monotonic() - start < seconds, what
    time.sleep(pause)
  return time.monotonic() - start


def rows(workdir, label):
  path = workdir / 'logs' / label / 'logs.csv'
  if not path.exists():
    return []
  with path.open() as file:
    return list(csv.DictReader(file))


def num_attempts(workdir, nodes):
  """Returns how often each node was started whose log matches a pattern."""
  logs = (workdir / 'processes').glob(f'{nodes}.log')
  return [path.read_text().count('--- ') for path in logs]


def checkpoint(workdir):
  """Returns the values of the newest checkpoint, whose arrays are readable."""
  paths = (workdir / 'checkpoints').glob('checkpoint-*')
  path = max(paths, key=lambda path: int(path.name.split('-')[1]))
  with np.load(path / 'arrays.npz') as arrays:
    assert dict(arrays)
  return json.loads((path / 'values.json').read_text())['values']


def seen(values):
  """Returns the observations in the statistics of the intrinsic reward."""
  return sum(
    sum(s['error_count']) for s in values['learner']['statistics'].values()
  )


def contents(folder):
  """Returns the content of every file in a directory."""
  return {p: p.read_bytes() for p in folder.rglob('*') if p.is_file()}
