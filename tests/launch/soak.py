"""Checks a long run for leaks of memory, files and threads: `make soak`.

  .venv/bin/python -m tests.launch.soak --minutes=60

Pre-trains on Montezuma's Revenge, and samples each process of the run with its
child processes every ten seconds. Prints a table, and saves a plot and its
data. Memory may grow until the replay and the episodic memories are full.
Compared with the third quarter of the time, the last quarter may have no more
files and threads, and at most 2% more memory.
"""

import argparse
import collections
import pathlib
import re
import signal
import sys
import time
from typing import NamedTuple

import matplotlib
import numpy as np
import psutil

from bt_acme.evaluation import tables
from tests.launch import scripts

_PERIOD = 10.0  # Seconds between two samples.
_LAUNCHER = 'launcher'
_FEWEST = 20  # Processes with fewer samples are not judged.
_SETTINGS = (
  *('--env=montezuma_revenge', '--preset=atari_small', '--num_actors=2'),
  *('--envs_per_actor=8', '--max_replay_size=500', '--memory_capacity=2000'),
  *('--checkpoint_period=60', '--max_actor_steps=1000000000'),
)


class Sample(NamedTuple):
  """The resources of a process and its child processes at one moment.

  Attributes:
    seconds: the time since the first sample.
    memory: the private and shared memory, in MB.
    files: the number of open files.
    threads: the number of threads.
  """

  seconds: float
  memory: float
  files: int
  threads: int


def look(name, pid, seconds):
  """Returns a sample of a process; None if it has ended."""
  try:
    process = psutil.Process(pid)
    # The child processes of the launcher are sampled separately.
    children = [] if name == _LAUNCHER else process.children(recursive=True)
    family = [process, *children]
    return Sample(
      seconds,
      sum(p.memory_info().rss for p in family) / 1e6,
      sum(p.num_fds() for p in family),
      sum(p.num_threads() for p in family),
    )
  except psutil.NoSuchProcess:
    return None


def pids(workdir, launcher):
  """Returns the PIDs of the launcher and all nodes, by name."""
  found = {_LAUNCHER: launcher}
  for path in sorted((workdir / 'processes').glob('*-*.log')):
    attempts = re.findall(r'^--- .*process (\d+)$', path.read_text(), re.M)
    if attempts:
      found[path.stem] = int(attempts[-1])
  return found


def watch(script, workdir, minutes, samples):
  """Adds samples of each process, by name, until the time is up."""
  scripts.wait_until(
    lambda: scripts.rows(workdir, 'learner'), script.process, seconds=600
  )
  start = time.monotonic()
  while (seconds := time.monotonic() - start) < 60 * minutes:
    assert script.process.poll() is None, 'the run has ended'
    for name, pid in pids(workdir, script.process.pid).items():
      sample = look(name, pid, seconds)
      if sample is not None:
        samples[name].append(sample)
    time.sleep(_PERIOD)


def growth(samples):
  """Returns the growth in MB/h over the second half of the time."""
  half = samples[len(samples) // 2 :]
  hours = [s.seconds / 3600 for s in half]
  return np.polyfit(hours, [s.memory for s in half], 1)[0]


def table(samples):
  """Returns a table of the processes at 10%, 50% and 100% of the time."""
  rows = []
  for name, own in samples.items():
    at = zip(own[len(own) // 10], own[len(own) // 2], own[-1], strict=True)
    _, memory, *others = (' '.join(f'{x:.0f}' for x in field) for field in at)
    rows.append([name, memory, f'{growth(own):+.1f}', *others])
  header = ['process', 'memory, MB', 'growth, MB/h', 'files', 'threads']
  return tables.markdown(header, rows)


def problems(samples):
  """Returns what has grown from the third quarter of the time to the last."""
  found = []
  for name, own in samples.items():
    if len(own) < _FEWEST:
      found.append(f'{name} has too few samples')
      continue
    third, last = np.array_split(np.array(own)[len(own) // 2 :, 1:], 2)
    grown = np.median(last, 0) > np.median(third, 0) * [1.02, 1, 1]
    for field in np.array(Sample._fields[1:])[grown]:
      found.append(f'{name} has more {field}')
  return found


def save(samples, folder):
  """Saves the samples as CSV, and a plot with a panel for each quantity."""
  matplotlib.use('Agg')
  from matplotlib import pyplot as plt

  folder.mkdir(parents=True, exist_ok=True)
  rows = [
    {'process': name, **sample._asdict()}
    for name, own in samples.items()
    for sample in own
  ]
  (folder / 'soak.csv').write_text(tables.csv_text(rows))
  units = {'memory': 'memory, MB', 'files': 'open files', 'threads': 'threads'}
  figure, axes = plt.subplots(1, 3, figsize=(12, 3.5), layout='constrained')
  for axis, (field, label) in zip(axes, units.items(), strict=True):
    for name, own in samples.items():
      minutes = [s.seconds / 60 for s in own]
      axis.plot(minutes, [getattr(s, field) for s in own], label=name)
    axis.set(xlabel='minutes', ylabel=label, ylim=(0, None))
  lines, names = axes[0].get_legend_handles_labels()
  figure.legend(lines, names, loc='outside upper center', ncols=len(names))
  figure.savefig(folder / 'soak.png', dpi=120)


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--minutes', type=float, default=60)
  folder = pathlib.Path('runs/soak')
  parser.add_argument('--folder', type=pathlib.Path, default=folder)
  options = parser.parse_args()
  workdir = options.folder.absolute() / 'run'
  if workdir.exists():
    sys.exit(
      f'error: {workdir} already exists. Remove it, or choose another --folder.'
    )
  with scripts.Script(
    'run_ngu', workdir, settings=_SETTINGS, capture=False
  ) as script:
    samples = collections.defaultdict(list)
    try:
      watch(script, workdir, options.minutes, samples)
      script.process.send_signal(signal.SIGINT)
    except KeyboardInterrupt:
      print('Stopped early; the run received Ctrl-C as well.')
    code = script.process.wait(60)
  for row in scripts.rows(workdir, 'actor')[-1:]:
    print(f'{int(row["actor_steps"]):,} actor steps')
  save(samples, options.folder)
  print(table(samples))
  assert code == 130, code
  faults = problems(samples)
  print('\n'.join(faults) or 'Nothing has grown in the last quarter.')
  sys.exit(bool(faults))


if __name__ == '__main__':
  main()
