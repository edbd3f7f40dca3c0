"""Simulated machines of a Ray cluster on this computer.

A machine is a network namespace (`ip-netns(8)`) with its own address. All
machines are plugged into one switch, where a cable can be pulled. They share
everything else, including the file system.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

RAY = pathlib.Path(__file__).parents[2] / '.venv-ray' / 'bin'
VARIABLES = {
  'RAY_AUTH_MODE': 'token',
  'RAY_AUTH_TOKEN': 'a-secret-of-this-test',
  'RAY_USAGE_STATS_ENABLED': '0',
  # A computer that also runs other tests may be slow.
  'RAY_raylet_start_wait_time_s': '120',
}
_PORT = 6379


def flags(address):
  """Returns the flags of a run on a cluster."""
  return (
    '--lp_launch_type=ray',
    f'--ray_address={address}',
    f'--ray_python={RAY / "python"}',
  )


def missing():
  """Returns a text about what such machines lack here; '' if nothing."""
  if not RAY.exists():
    return 'the environment of `make ray`'
  if os.geteuid() or not shutil.which('ip'):
    return 'root and `ip`, for network namespaces'
  name = f'bt-{os.getpid()}-try'
  link = ['ip', '-n', name, 'link', 'add']
  commands = (
    ['ip', 'netns', 'add', name],
    [*link, 'switch', 'type', 'bridge'],
    [*link, 'cable', 'type', 'veth', 'peer', 'name', 'port'],
  )
  try:
    if any(subprocess.run(command).returncode for command in commands):
      return 'network namespaces with bridges and cables'
  finally:
    subprocess.run(['ip', 'netns', 'del', name])
  return ''


class Machines:
  """A cluster; the first machine is its head."""

  def __init__(self, number, num_cpus):
    """Starts Ray on all machines.

    Args:
      number: the number of machines.
      num_cpus: the number of cores that each machine offers.
    """
    self._ended = contextlib.ExitStack()
    self._names = [f'bt-{os.getpid()}-{i}' for i in range(number)]
    self._num_cpus = num_cpus
    self._folder = self._ended.enter_context(tempfile.TemporaryDirectory())
    self.address = f'{self.host(0)}:{_PORT}'
    try:
      self._plug()
      for i in range(number):
        self._start_ray(i)
    except BaseException:
      self.close()
      raise

  def host(self, machine):
    """Returns the address of a machine."""
    return f'10.77.0.{machine + 1}'

  def command_on(self, machine):
    """Returns the prefix of a command that is executed on a machine."""
    return ['ip', 'netns', 'exec', self._names[machine]]

  def cut(self, machine):
    """Pulls the cable of a machine."""
    self._cable(machine, 'down')

  def mend(self, machine):
    """Plugs the cable of a machine in again."""
    self._cable(machine, 'up')

  def crash(self, machine):
    """Kills all processes of a machine, like a power cut."""
    self.cut(machine)
    self._kill(machine)

  def boot(self, machine):
    """Restarts a machine, with no processes except Ray."""
    self._kill(machine)
    self.mend(machine)
    self._start_ray(machine)

  def all_processes(self):
    """Returns the PIDs of the processes on all machines."""
    return [pid for i in range(len(self._names)) for pid in self._pids(i)]

  def processes(self, machine):
    """Returns the command lines of the processes on a machine, by PID."""
    found = {}
    for pid in self._pids(machine):
      with contextlib.suppress(OSError):
        text = pathlib.Path(f'/proc/{pid}/cmdline').read_text()
        found[pid] = text.replace('\0', ' ')
    return found

  def close(self):
    """Kills all processes of the machines, and removes the machines."""
    for i in range(len(self._names)):
      self._kill(i)
    for name in (*self._names, self._switch):
      subprocess.run(['ip', 'netns', 'del', name], capture_output=True)
    self._ended.close()

  @property
  def _switch(self):
    return f'bt-{os.getpid()}-switch'

  def _plug(self):
    """Creates the machines, with a cable from each to the switch."""
    switch = ['ip', '-n', self._switch, 'link']
    _run('ip', 'netns', 'add', self._switch)
    _run(*switch, 'add', 'bridge', 'type', 'bridge')
    _run(*switch, 'set', 'bridge', 'up')
    for i, name in enumerate(self._names):
      _run('ip', 'netns', 'add', name)
      peer = ['peer', 'name', f'port{i}', 'netns', self._switch]
      link = ['ip', 'link', 'add', 'cable', 'netns', name]
      _run(*link, 'type', 'veth', *peer)
      _run(*switch, 'set', f'port{i}', 'master', 'bridge', 'up')
      on = ['ip', '-n', name]
      _run(*on, 'link', 'set', 'lo', 'up')
      _run(*on, 'address', 'add', f'{self.host(i)}/24', 'dev', 'cable')
      _run(*on, 'link', 'set', 'cable', 'up')

  def _start_ray(self, machine):
    where = [f'--address={self.address}']
    if not machine:
      where = ['--head', f'--port={_PORT}', '--include-dashboard=false']
      where.append(f'--temp-dir={self._folder}')
    _run(
      *self.command_on(machine),
      *(str(RAY / 'ray'), 'start', *where, f'--num-cpus={self._num_cpus}'),
      f'--node-ip-address={self.host(machine)}',
      '--object-store-memory=80000000',
    )

  def _cable(self, machine, state):
    port = f'port{machine}'
    _run('ip', '-n', self._switch, 'link', 'set', port, state)

  def _kill(self, machine):
    for pid in self._pids(machine):
      with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)

  def _pids(self, machine):
    done = subprocess.run(
      ['ip', 'netns', 'pids', self._names[machine]],
      capture_output=True,
      text=True,
    )
    return list(map(int, done.stdout.split()))


def _run(*command):
  subprocess.run(
    command,
    env={**os.environ, **VARIABLES},
    stdout=subprocess.DEVNULL,
    check=True,
    timeout=180,
  )
