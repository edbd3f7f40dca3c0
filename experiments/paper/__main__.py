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
import os
import pathlib
import signal
import sys
from collections.abc import Sequence

from bt_acme import files
from bt_acme.runtime import output
from experiments.harness import dataset as dataset_lib
from experiments.harness import gather as gather_lib
from experiments.harness import runs, workers
from experiments.harness import slots as slots_lib
from experiments.paper import artifacts as artifacts_lib
from experiments.paper import (
  claims,
  folders,
  plan_and_status,
  report,
  required_runs,
  results,
  scales,
)
from experiments.paper import options as options_lib

_USAGE_ERROR = 2
_SHOWN_DIAGNOSES = 20


def main(words: Sequence[str]) -> int:
  """Executes a command line and returns the exit code."""
  try:
    return _execute(options_lib.read(words, __doc__))
  except ValueError as error:
    print(f'error: {" ".join(str(error).split())}', file=sys.stderr)
    return _USAGE_ERROR
  except BrokenPipeError:
    # The reader of the output, such as `head`, has closed the pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE
  except OSError as error:
    print(
      f'error: folder: {error}. Free disk space, choose another --folder, or '
      'rerun this command if another one has just written there.',
      file=sys.stderr,
    )
    return _USAGE_ERROR


def _execute(options: argparse.Namespace) -> int:
  """Executes a command; an empty command makes artifacts from scratch."""
  command, folder = options.command, options.folder
  if command == 'list':
    print(_list(), flush=True)
    return 0
  folder.check()
  if command == 'plan':
    print(_plan(options), flush=True)
    return 0
  if command in ('', 'work'):
    return _make(options)
  if not folder.exists:
    raise ValueError(
      f'folder={str(folder.path)!r} contains no runs. Start with an artifact '
      'or with `work`, or pass the --folder and --scale that you started with.'
    )
  if command == 'render' and options.request.artifacts:
    _render(options, options.request.artifacts)
  elif command == 'render':
    _report(options)
  elif command == 'gather':
    _gather(folder)
  elif command == 'status':
    print(plan_and_status.status(folder))
  elif command == 'publish':
    print(f'published: {_publish(folder)}')
  else:
    print(claims.markdown(claims.evaluate(_results(folder))))
  return 0


def _specs(options: argparse.Namespace) -> list[runs.RunSpec]:
  """Returns the runs of the command; a choice must select at least one."""
  request = options.request
  specs = required_runs.declared(request, options.folder.scale)
  if not specs and (request.games or request.arms):
    raise ValueError(
      f'games={request.games} and arms={request.arms} select none of the runs '
      f'of {", ".join(request.artifacts)}. Omit --games or --arms.'
    )
  return specs


def _plan(options: argparse.Namespace) -> str:
  specs = _part(_specs(options), *options.shard)
  return plan_and_status.plan(options.folder, specs, options.slots)


def _part(
  specs: Sequence[runs.RunSpec], part: int, parts: int
) -> list[runs.RunSpec]:
  """Returns one of several parts; a run's final evaluation is in its part."""
  owners = [
    spec.needs[0].run.id if spec.stage == runs.FINAL_EVALUATION else spec.id
    for spec in specs
  ]
  numbers = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
  return [
    spec
    for spec, owner in zip(specs, owners, strict=True)
    if numbers[owner] % parts == part - 1
  ]


def _make(options: argparse.Namespace) -> int:
  """Executes runs and, unless the command is `work`, makes the report."""
  folder = options.folder
  specs = _specs(options)
  slots_lib.check(options.slots)
  folder.claim()
  folder.ask(options.request)
  if not options.command:
    print(_plan(options), flush=True)
  ended = workers.Worker(
    folder.path,
    _part(specs, *options.shard),
    options.slots,
    hours=options.hours,
  ).work()
  output.show(str(ended))
  if ended.wrong_flags:
    output.show(ended.wrong_flags, file=sys.stderr)
  if options.command or ended.wrong_flags or ended.signum:
    return ended.exit_code
  _gather(folder)
  _report(options)
  return ended.exit_code


def _gather(folder: folders.Folder) -> None:
  data, diagnoses = gather_lib.gather(
    folder.path, folder.specs(), folder.scale.name
  )
  dataset_lib.write(folder.path, data)
  for line in diagnoses[:_SHOWN_DIAGNOSES]:
    print(line if len(line) < 600 else f'{line[:600]} ...')
  more = len(diagnoses) - _SHOWN_DIAGNOSES
  if more > 0:
    print(f'... and {more} more.')
  print(
    f'Wrote {folder.path}/runs.csv (rows: {len(data.runs)}) and scores.csv '
    f'(rows: {len(data.scores)})'
  )


def _results(folder: folders.Folder) -> results.Results:
  return results.Results(dataset_lib.read(folder.path), folder.scale.suites)


def _publish(folder: folders.Folder) -> pathlib.Path:
  if folder.scale != scales.get(folder.scale.name):
    raise ValueError(
      'publish: the scale is modified. Remove --pretraining and --set.'
    )
  _gather(folder)
  return report.publish(folder, dataset_lib.read(folder.path))


def _render(options: argparse.Namespace, artifacts: Sequence[str]) -> list[str]:
  """Writes artifacts and returns their sections of a report."""
  found, sections = _results(options.folder), []
  for artifact in artifacts:
    paths, section = report.render(
      artifact, found, options.folder.path / report.RESULTS, options.format
    )
    print(f'{artifact}: {", ".join(map(str, paths)) or "nothing"}')
    sections.append(section)
  return sections


def _report(options: argparse.Namespace) -> None:
  """Renders all requested artifacts and writes the report."""
  folder, path = options.folder, options.folder.path / 'report.md'
  sections = _render(options, folder.artifacts())
  verdicts = report.write(path, folder, _results(folder), sections)
  if 'csv' in options.format:
    text = claims.csv_text(verdicts)
    files.write_text(folder.path / report.RESULTS / 'claims.csv', text)
  print(f'report: {path}')


def _list() -> str:
  """Lists all artifacts and scales."""
  lines: list[str] = []
  for name, artifact in artifacts_lib.ARTIFACTS.items():
    arms = ' '.join(artifact.arms) or 'no runs'
    lines += [f'{name:<8} {artifact.title}', f'{"":<8} {arms}']
  listed = (f'{x.name:<7} {x.purpose}' for x in scales.SCALES.values())
  return '\n'.join([*lines, '', 'Scales:', *listed])


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
