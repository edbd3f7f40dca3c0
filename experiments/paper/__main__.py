"""The paper's tables and figures, by one command, at four scales.

  python -m experiments.paper table3 --scale=smoke

plans the runs of table 3, works through them, gathers what they have left and
renders the table. Started again, it goes on. Ctrl-C stops it; all is saved. Its
parts are commands of their own:

  list                     what there is
  plan table3 fig9         what would run: runs, steps, hours, disk
  work --shard=3/16        only the runs; any number of machines on one folder
  status                   how far they are, and which have failed
  gather                   runs.csv and scores.csv from what is there
  render table3 fig3       the artifacts from these
  claims                   which of the paper's claims hold
"""

import argparse
import pathlib
import sys
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple

from bt_acme import files
from bt_acme.config import names
from bt_acme.config import run as run_config
from experiments.harness import dataset as dataset_lib
from experiments.harness import gather as gather_lib
from experiments.harness import queue, runs, slots
from experiments.paper import artifacts as artifacts_lib
from experiments.paper import (
  claims,
  declarations,
  folders,
  planning,
  report,
  scales,
)

_COMMANDS = ('list', 'plan', 'work', 'status', 'gather', 'render', 'claims')
_USAGE_ERROR, _FAILED = 2, 1
_SHOWN_DIAGNOSES = 20


def main(arguments: Sequence[str]) -> int:
  """Does what the command line says, and returns the exit code."""
  try:
    options = _parser().parse_args(arguments)
    command, artifacts = _read_names(options.names)
    if command == 'list':
      print(_list())
      return 0
    return _Paper(options, artifacts).do(command)
  except ValueError as error:
    print(f'error: {" ".join(str(error).split())}', file=sys.stderr)
    return _USAGE_ERROR


class _Paper:
  """A command on one folder."""

  def __init__(self, options: argparse.Namespace, artifacts: Tuple[str, ...]):
    settings = _read_settings(options.set)
    scale = scales.get(options.scale)
    path = pathlib.Path(options.folder or f'runs/paper/{scale.name}')
    self._options = options
    self._formats = tuple(options.format.split(','))
    report.check_formats(self._formats)
    self._folder = folders.Folder(path, scale, tuple(settings.items()))
    self._artifacts = artifacts
    self._choice = declarations.Choice(
      _read_seeds(options.seeds),
      _read_list(options.games),
      _read_list(options.arms),
      settings,
    )
    self._slots = slots.parse(options.slots or scale.slots)
    self._shard = _read_shard(options.shard)
    self._folder.check()

  def do(self, command: str) -> int:
    """Executes a command, or all of them if it is empty."""
    if command == 'plan':
      print(self._plan())
      return 0
    if command in ('', 'work'):
      return self._make(command)
    if not self._folder.exists:
      raise ValueError(
        f'folder={str(self._folder.path)!r} holds nothing yet: begin with an '
        'artifact or with `work`, or name the --folder and --scale that you '
        'began with.'
      )
    if command == 'status':
      print(planning.status(self._folder.path, self._folder.specs()))
      return 0
    if command == 'gather':
      self._gather()
      return 0
    if command == 'render':
      if self._artifacts:
        return self._render(self._artifacts)[0]
      return self._report()
    print(claims.markdown(self._verdicts()))
    return 0

  def _make(self, command: str) -> int:
    """Works through runs, and renders what was asked for unless told not to."""
    artifacts = self._artifacts or tuple(artifacts_lib.ARTIFACTS)
    specs = self._specs(artifacts)
    slots.check(self._slots)
    self._folder.claim()
    self._folder.ask(artifacts, self._choice)
    if not command:
      print(self._plan(), flush=True)
    code = self._work(specs)
    if command or code not in (0, _FAILED):
      return code
    self._gather()
    return self._report() or code

  def _specs(self, artifacts: Sequence[str]) -> List[runs.RunSpec]:
    return declarations.declared_by_all(
      artifacts, self._folder.scale, self._choice
    )

  def _plan(self) -> str:
    specs = self._specs(self._artifacts or tuple(artifacts_lib.ARTIFACTS))
    folder = self._folder
    return planning.plan(folder.path, specs, folder.scale, self._slots)

  def _work(self, specs: List[runs.RunSpec]) -> int:
    part, parts = self._shard
    worker = queue.Worker(
      self._folder.path,
      specs[part - 1 :: parts],
      self._slots,
      hours=self._options.hours,
      say=lambda line: print(line, flush=True),
    )
    ended = worker.work()
    print(
      f'{ended.done} runs are done, {ended.left} are left, '
      f'{len(ended.failed)} have failed, and {len(ended.blocked)} need one of '
      'these.'
    )
    if ended.wrong_flags:
      print(ended.wrong_flags, file=sys.stderr)
      return _USAGE_ERROR
    if ended.signum:
      return 128 + ended.signum
    return _FAILED if ended.failed else 0

  def _gather(self) -> None:
    gathered = gather_lib.gather(
      self._folder.path,
      self._folder.specs(),
      scale=self._folder.scale.name,
      frames_per_step=scales.frames_per_step,
    )
    dataset_lib.write(self._folder.path, gathered.dataset)
    for line in gathered.diagnoses[:_SHOWN_DIAGNOSES]:
      print(line if len(line) < 600 else f'{line[:600]} ...')
    more = len(gathered.diagnoses) - _SHOWN_DIAGNOSES
    if more > 0:
      print(f'... and {more} more.')
    data = gathered.dataset
    print(
      f'{len(data.runs)} runs and {len(data.scores)} scores are in '
      f'{self._folder.path}/runs.csv and scores.csv'
    )

  def _dataset(self) -> dataset_lib.Dataset:
    return dataset_lib.read(self._folder.path)

  def _verdicts(self) -> Tuple[claims.Verdict, ...]:
    return claims.evaluate(self._dataset(), self._folder.scale.suites)

  def _render(self, artifacts: Sequence[str]) -> Tuple[int, List[str]]:
    """Writes what can be written, and says what cannot.

    Returns:
      The exit code, and what a report shows of each artifact.
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
          self._formats,
        )
      except ValueError as error:
        print(f'{artifact}: {error}', file=sys.stderr)
        sections.append(f'## {artifact}\n\nIt could not be made: {error}\n')
        code = _FAILED
      else:
        print(f'{artifact}: {", ".join(map(str, rendered.paths)) or "nothing"}')
        sections.append(rendered.markdown)
    return code, sections

  def _report(self) -> int:
    """Renders all that was asked for, and joins it with the claims."""
    code, sections = self._render(self._folder.artifacts())
    path = self._folder.path / 'report.md'
    text = report.joined(
      self._folder.scale.name,
      self._dataset(),
      self._folder.commands(),
      self._verdicts(),
      sections,
    )
    files.write_text(path, text)
    print(f'report: {path}')
    return code


def _list() -> str:
  """Describes all artifacts and scales."""
  lines = []
  for name, artifact in artifacts_lib.ARTIFACTS.items():
    lines.append(f'{name:<8} {artifact.title}')
    lines.append(f'{"":<8} {" ".join(artifact.arms) or "no runs"}')
  scale_lines = [
    f'{scale.name:<7} {scale.purpose}' for scale in scales.SCALES.values()
  ]
  return '\n'.join([*lines, '', 'Scales:', *scale_lines])


class _Parser(argparse.ArgumentParser):
  """Reports a mistake in one line."""

  def error(self, message: str) -> NoReturn:
    raise ValueError(f'{message} (--help lists all flags)')


def _parser() -> argparse.ArgumentParser:
  parser = _Parser(
    prog='python -m experiments.paper',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument(
    'names', nargs='+', metavar='NAME', help='a command, or artifacts'
  )
  for flag, default, text in (
    ('scale', 'smoke', f'one of {", ".join(scales.SCALES)}'),
    ('folder', '', 'where everything goes; runs/paper/SCALE if not given'),
    ('seeds', '', 'the seeds, separated by commas, instead of the scale`s'),
    ('games', '', 'only these environments, separated by commas'),
    ('arms', '', 'only these arms, separated by commas'),
    ('slots', '', 'where runs take place, such as cpu:4 or gpu:0,gpu:1/2'),
    (
      'shard',
      '1/1',
      'the part of the runs that this worker does, such as 3/16',
    ),
    ('format', ','.join(report.FORMATS), 'what to render'),
  ):
    parser.add_argument(f'--{flag}', default=default, help=text)
  parser.add_argument(
    '--hours',
    type=float,
    default=float('inf'),
    help='stop all after so many hours, and save',
  )
  parser.add_argument(
    '--set',
    action='append',
    default=[],
    metavar='NAME=VALUE',
    help='a setting of all runs that have it; may be repeated',
  )
  return parser


def _read_names(given: Sequence[str]) -> Tuple[str, Tuple[str, ...]]:
  """Returns the command, empty for all of them, and the artifacts."""
  command = given[0] if given[0] in _COMMANDS else ''
  artifacts = tuple(given[1:] if command else given)
  for name in artifacts:
    if name in artifacts_lib.ARTIFACTS:
      continue
    known = (*artifacts_lib.ARTIFACTS, *(() if command else _COMMANDS))
    raise ValueError(f'artifact={name!r}: {names.suggest(name, known)}')
  return command, artifacts


def _read_list(text: str) -> Tuple[str, ...]:
  return tuple(part for part in text.split(',') if part)


def _read_seeds(text: str) -> Tuple[int, ...]:
  seeds: Optional[List[int]] = None
  if all(part.isdecimal() for part in _read_list(text)):
    seeds = [int(part) for part in _read_list(text)]
  if (
    seeds is None
    or len(set(seeds)) < len(seeds)
    or any(seed > run_config.LARGEST_SEED for seed in seeds)
  ):
    raise ValueError(
      f'seeds={text} must be different whole numbers of at least 0, separated '
      'by commas.'
    )
  return tuple(seeds)


def _read_shard(text: str) -> Tuple[int, int]:
  part, _, parts = text.partition('/')
  if not (part.isdecimal() and parts.isdecimal()) or not 1 <= int(part) <= int(
    parts
  ):
    raise ValueError(
      f'shard={text!r} must be like 3/16: the third of sixteen parts.'
    )
  return int(part), int(parts)


def _read_settings(given: Sequence[str]) -> Dict[str, Any]:
  settings: Dict[str, Any] = {}
  for text in given:
    name, equals, value = text.partition('=')
    if not equals:
      raise ValueError(f'set={text!r} must be like learning_rate=1e-4.')
    settings[name] = runs.parsed(name, value)
  return settings


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
