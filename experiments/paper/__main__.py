"""Reproduces the paper's tables and figures at four scales.

  python -m experiments.paper table3 --scale=smoke

plans and executes the runs of table 3, gathers their results and renders the
table. Ctrl-C stops the work and saves the state; rerun the same command to
continue. Each part is also a command:

  list                     list artifacts and scales
  plan table3 fig9         show runs, steps, hours and disk space; start nothing
  work --shard=3/16        only execute runs; any number of machines may share
                           a directory
  status                   show the progress of the runs and their failures
  gather                   write runs.csv and scores.csv from the results so far
  render table3 fig3       make artifacts from these two files
  claims                   show which of the paper's claims hold
  publish                  store results and report in the repository
"""

import argparse
import contextlib
import os
import signal
import sys
from typing import Iterator, List, Sequence, Tuple

from bt_acme import files
from experiments.harness import cluster, driver, pool, runs
from experiments.harness import dataset as dataset_lib
from experiments.harness import gather as gather_lib
from experiments.harness import slots as slots_lib
from experiments.paper import artifacts as artifacts_lib
from experiments.paper import (
  claims,
  declarations,
  planning,
  publishing,
  report,
  scales,
)
from experiments.paper import options as options_lib

_USAGE_ERROR, _FAILED = 2, 1
_SHOWN_DIAGNOSES = 20


def main(arguments: Sequence[str]) -> int:
  """Executes a command line and returns the exit code."""
  try:
    options = options_lib.read(arguments, __doc__)
    if options.command == 'list':
      print(_list(), flush=True)
      return 0
    options.folder.check()
    return _Paper(options).do()
  except ValueError as error:
    print(f'error: {" ".join(str(error).split())}', file=sys.stderr)
    return _USAGE_ERROR
  except BrokenPipeError:
    # The reader of the output, such as `head`, has closed the pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE


class _Paper:
  """Executes one command on one directory."""

  def __init__(self, options: argparse.Namespace):
    self._options = options
    self._folder = options.folder
    self._artifacts = options.artifacts

  def do(self) -> int:
    """Executes the command; an empty command makes artifacts from scratch."""
    command = self._options.command
    if command == 'plan':
      print(self._plan(), flush=True)
      return 0
    if command in ('', 'work'):
      return self._make(command)
    if not self._folder.exists:
      raise ValueError(
        f'folder={str(self._folder.path)!r} contains no runs. Start with an '
        'artifact or with `work`, or pass the --folder and --scale that you '
        'started with.'
      )
    if command == 'status':
      folder = self._folder
      print(planning.status(folder.path, folder.specs(), folder.scale))
      return 0
    if command == 'gather':
      self._gather()
      return 0
    if command == 'render':
      if self._artifacts:
        return self._render(self._artifacts)[0]
      return self._report()
    if command == 'publish':
      print(self._publish())
      return 0
    print(claims.markdown(self._verdicts()))
    return 0

  def _make(self, command: str) -> int:
    """Executes runs and, unless the command is `work`, makes the report."""
    options = self._options
    artifacts = self._artifacts or tuple(artifacts_lib.ARTIFACTS)
    specs = self._specs(artifacts)
    with self._processes() as processes:
      self._folder.claim()
      self._folder.ask(artifacts, options.choice)
      if not command:
        print(self._plan(), flush=True)
      part, parts = options.shard
      ended = driver.Worker(
        self._folder.path,
        specs[part - 1 :: parts],
        processes,
        hours=options.hours,
        say=lambda line: print(line, flush=True),
      ).work()
    print(ended)
    if ended.wrong_flags:
      print(ended.wrong_flags, file=sys.stderr)
    if command or ended.exit_code not in (0, _FAILED):
      return ended.exit_code
    self._gather()
    return self._report() or ended.exit_code

  @contextlib.contextmanager
  def _processes(self) -> Iterator[Sequence[driver.Process]]:
    """Provides the processes of the requested slots."""
    options = self._options
    if options.ray_address:
      joined = cluster.Cluster(options.ray_address, options.ray_python)
      with contextlib.closing(joined):
        yield joined.processes(options.slots_text)
    else:
      slots_lib.check(options.slots)
      yield [pool.Process(slot) for slot in options.slots]

  def _specs(self, artifacts: Sequence[str]) -> List[runs.RunSpec]:
    return declarations.declared(
      artifacts, self._folder.scale, self._options.choice
    )

  def _plan(self) -> str:
    specs = self._specs(self._artifacts or tuple(artifacts_lib.ARTIFACTS))
    folder = self._folder
    return planning.plan(folder.path, specs, folder.scale, self._options.slots)

  def _gather(self) -> None:
    data, diagnoses = gather_lib.gather(
      self._folder.path,
      self._folder.specs(),
      scale=self._folder.scale.name,
      frames_per_step=scales.frames_per_step,
    )
    dataset_lib.write(self._folder.path, data)
    for line in diagnoses[:_SHOWN_DIAGNOSES]:
      print(line if len(line) < 600 else f'{line[:600]} ...')
    more = len(diagnoses) - _SHOWN_DIAGNOSES
    if more > 0:
      print(f'... and {more} more.')
    print(
      f'Wrote {self._folder.path}/runs.csv (rows: {len(data.runs)}) and '
      f'scores.csv (rows: {len(data.scores)})'
    )

  def _dataset(self) -> dataset_lib.Dataset:
    for name in ('runs.csv', 'scores.csv'):
      if not (self._folder.path / name).exists():
        raise ValueError(
          f'folder={str(self._folder.path)!r} has no {name}. Run `gather` to '
          'create the file.'
        )
    return dataset_lib.read(self._folder.path)

  def _verdicts(self) -> Tuple[claims.Verdict, ...]:
    return claims.evaluate(self._dataset(), self._folder.scale.suites)

  def _publish(self) -> str:
    folder = self._folder
    if folder.scale != scales.get(folder.scale.name) or folder.settings:
      raise ValueError(
        'publish: only unmodified scales can be published. Remove '
        '--pretraining and --set.'
      )
    self._gather()
    path = publishing.publish(
      folder.scale, self._dataset(), folder.commands(), folder.artifacts()
    )
    return f'published: {path}'

  def _render(self, artifacts: Sequence[str]) -> Tuple[int, List[str]]:
    """Writes artifacts and prints an error for each one that cannot be made.

    Returns:
      The exit code, and the section of each artifact in a report.
    """
    data, code = self._dataset(), 0
    sections = []
    for artifact in artifacts:
      try:
        rendered = report.render(
          artifact,
          data,
          self._folder.scale.suites,
          self._folder.path / 'results',
          self._options.formats,
        )
      except ValueError as error:
        print(f'{artifact}: {error}', file=sys.stderr)
        sections.append(f'## {artifact}\n\nNot available: {error}\n')
        code = _FAILED
      else:
        print(f'{artifact}: {", ".join(map(str, rendered.paths)) or "nothing"}')
        sections.append(rendered.markdown)
    return code, sections

  def _report(self) -> int:
    """Renders all requested artifacts and writes the report."""
    code, sections = self._render(self._folder.artifacts())
    path = self._folder.path
    verdicts = self._verdicts()
    text = report.joined(
      self._folder.scale,
      self._dataset(),
      self._folder.commands(),
      verdicts,
      sections,
    )
    if 'csv' in self._options.formats:
      files.write_text(
        path / 'results' / 'claims.csv', claims.csv_text(verdicts)
      )
    files.write_text(path / 'report.md', text)
    print(f'report: {path / "report.md"}')
    return code


def _list() -> str:
  """Lists all artifacts and scales."""
  lines = []
  for name, artifact in artifacts_lib.ARTIFACTS.items():
    lines.append(f'{name:<8} {artifact.title}')
    lines.append(f'{"":<8} {" ".join(artifact.arms) or "no runs"}')
  scale_lines = [
    f'{scale.name:<7} {scale.purpose}' for scale in scales.SCALES.values()
  ]
  return '\n'.join([*lines, '', 'Scales:', *scale_lines])


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
