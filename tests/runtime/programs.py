"""Real Launchpad programs for tests, each in its own process."""

import sys

import portpicker

from tests.launch import scripts

# Its arguments name the nodes besides a coordinator and a counter.
_SCRIPT = """
import atexit, os, signal, sys, time
import bt_acme
import launchpad as lp
from bt_acme.runtime import launcher, supervisor
from bt_acme.runtime import progress as progress_lib

launch_type, workdir, port = sys.argv[1:4]
names = sys.argv[4:]

def table():
  import reverb
  return [reverb.Table('replay', reverb.selectors.Fifo(),
    reverb.selectors.Fifo(), 10, reverb.rate_limiters.MinSize(1))]

def wait_for_stop(seconds=600.0):
  # Polls, as nodes must: Python handles a signal in the main thread, which
  # sleeps on if the system delivers the signal to another thread.
  end = time.monotonic() + seconds
  while time.monotonic() < end and not lp.wait_for_stop(0.05):
    pass

class Counter:
  def count(self):
    return 7

  def run(self):
    wait_for_stop()

def say(name):
  print('says', name, flush=True)
  open(os.path.join(workdir, name), 'w').close()

def coordinate(counter, replay, seconds):
  progress = progress_lib.Progress(100)
  values = {'actor_steps': counter.count()}
  if replay:
    replay.insert([1.0], {'replay': 1.0})
    values['replay_size'] = replay.server_info()['replay'].current_size
  progress.update(values)
  say('coordinator')
  print('counter at', counter.address, flush=True)
  wait_for_stop(seconds)
  progress.close()

def idle():
  say('idle')
  wait_for_stop()
  say('idle-stopped')

def finish():
  if launch_type == 'local_mp':  # The interpreter of a node must not end.
    atexit.register(os.abort)
  say('finish')

def stubborn():
  if launch_type == 'local_mp':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
  say('stubborn')
  time.sleep(600)

if __name__ == '__main__':
  program = lp.Program('test')
  replay = None
  counter = program.add_node(lp.CourierNode(Counter), label='counter')
  seconds = 600.0
  for name in names:
    if name == 'end':
      seconds = 0.5
    elif name == 'replay':
      replay = program.add_node(lp.ReverbNode(table), label='replay')
    else:
      program.add_node(lp.PyNode(globals()[name]), label='worker')
  program.add_node(
    lp.PyNode(coordinate, counter, replay, seconds), label='coordinator')
  code = launcher.launch(program, workdir=workdir, launch_type=launch_type,
    environments={'worker': {'GREETING': 'hello'}},
    ports={'counter': int(port)},
    rules=supervisor.Rules(max_restarts_per_hour=1, grace_seconds=30.0))
  sys.exit(code)
"""


class Run(scripts.Program):
  """A running program."""

  def __init__(self, tmp_path, launch_type, *nodes):
    self.workdir = tmp_path
    self.port = portpicker.pick_unused_port()
    script = tmp_path / 'script.py'
    script.write_text(_SCRIPT)
    command = [sys.executable, script, launch_type, tmp_path]
    proxy = {'https_proxy': 'http://proxy.invalid:1'}  # Nodes must not use it.
    super().__init__([*command, str(self.port), *nodes], proxy)

  def wait_for(self, *names):
    """Waits until these nodes have started."""
    scripts.wait_until(
      lambda: all((self.workdir / name).exists() for name in names),
      self.process,
      seconds=60,
    )
