"""Parses and validates the command line."""

import argparse
import dataclasses
import pathlib
import re
from collections.abc import Sequence
from typing import NoReturn

from bt_acme.config import checks
from experiments import command_line
from experiments.harness import runs, slots
from experiments.paper import artifacts as artifacts_lib
from experiments.paper import folders, report, required_runs, scales

COMMANDS = 'list plan work status gather render claims publish'.split()
_TAKE_ARTIFACTS = ('plan', 'work', 'render')  # Commands that take artifacts.
_TAKE_PARTS = ('', 'work', 'plan')  # Commands that take a part of the runs.


@dataclasses.dataclass(frozen=True)
class PaperConfig:
  """Settings of the commands.

  Attributes:
    scale: one of the scales that `list` shows
    pretraining: shared (one policy for all seeds) or per_seed; defaults to
      per_seed for smoke, and to shared, like the paper, for the other scales
    folder: output directory; defaults to runs/paper/SCALE
    seeds: seeds, separated by commas; defaults to the scale
    games: environments, separated by commas; defaults to all
    arms: arms, separated by commas; defaults to all
    slots: slots that execute runs, such as cpu:4 or gpu:0,gpu:1/2; defaults to
      the slots of the scale
    shard: part of the runs to execute, such as 3/16
    format: formats, separated by commas
    hours: hours after which runs are saved and stopped
  """

  scale: str = 'smoke'
  pretraining: str = ''
  folder: str = ''
  seeds: tuple[str, ...] = ()
  games: tuple[str, ...] = ()
  arms: tuple[str, ...] = ()
  slots: str = ''
  shard: str = '1/1'
  format: tuple[str, ...] = report.FORMATS
  hours: float = float('inf')


def read(words: Sequence[str], description: str) -> argparse.Namespace:
  """Parses a command line; writes nothing.

  Args:
    words: the command line.
    description: the text above the flags in `--help`.

  Returns:
    The flags by name. `command` is empty to make artifacts from scratch,
    `folder` is a `folders.Folder`, `request` a `required_runs.Request`, and
    `slots` are the slots of this machine.

  Raises:
    ValueError: if the command line is invalid.
  """
  given = _parser(description).parse_args(words)
  given.command, artifacts = _read_names(given.names)
  command = given.command
  settings = {name: runs.parsed(name, value) for name, value in given.set}
  scale = scales.get(given.scale)
  kind = given.pretraining or scale.pretraining
  command_line.known('pretraining', kind, scales.PRETRAINING)
  scale = scale._replace(pretraining=kind, overrides=settings)
  path = pathlib.Path(given.folder or f'runs/paper/{scale.name}').expanduser()
  given.folder = folders.Folder(path, scale)
  seeds = command_line.seeds(given.seeds) if given.seeds else ()
  given.request = required_runs.Request(
    artifacts, seeds, given.games, given.arms
  )
  if command not in _TAKE_PARTS and any((given.seeds, given.games, given.arms)):
    raise ValueError(
      f'seeds, games, arms: `{command}` applies to all requested runs. Use '
      '--seeds, --games and --arms only with `plan`, `work` and artifacts.'
    )
  for one in given.format:
    command_line.known('format', one, report.FORMATS)
  checks.require(given.hours > 0, f'hours={given.hours} must be positive.')
  given.shard = _shard(given.shard)
  given.slots = slots.parse(given.slots or scale.slots)
  return given


def _refuse(message: str) -> NoReturn:
  raise ValueError(f'{message} (see --help for all flags)')


def _parser(description: str) -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog='python -m experiments.paper',
    description=description,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.error = _refuse  # type: ignore[method-assign]
  parser.add_argument(
    'names', nargs='+', metavar='NAME', help='a command or artifacts'
  )
  for name, text in checks.help_of(PaperConfig).items():
    default = getattr(PaperConfig, name)
    kind = _words if isinstance(default, tuple) else type(default)
    parser.add_argument(f'--{name}', default=default, type=kind, help=text)
  parser.add_argument(
    '--set',
    action='append',
    default=[],
    type=_setting,
    metavar='NAME=VALUE',
    help='setting of all training runs that have it; may be repeated',
  )
  return parser


def _read_names(given: Sequence[str]) -> tuple[str, tuple[str, ...]]:
  """Returns the command, which may be empty, and the artifacts.

  Without artifacts, `render` makes a report, and other commands take all.
  """
  command = given[0] if given[0] in COMMANDS else ''
  artifacts = tuple(given[1:] if command else given)
  if artifacts and command and command not in _TAKE_ARTIFACTS:
    raise ValueError(
      f'artifact={artifacts[0]!r}: `{command}` applies to all requested runs. '
      'Remove the artifact.'
    )
  known = (
    *artifacts_lib.ARTIFACTS,
    *(each for each in COMMANDS if not command and each not in artifacts),
  )
  for name in artifacts:
    command_line.known('artifact', name, known)
  default = () if command == 'render' else tuple(artifacts_lib.ARTIFACTS)
  return command, artifacts or default


def _words(text: str) -> tuple[str, ...]:
  return tuple(filter(None, text.split(',')))


def _shard(text: str) -> tuple[int, int]:
  found = re.fullmatch('([0-9]+)/([0-9]+)', text)
  part, parts = map(int, found.groups()) if found else (0, 0)
  checks.require(
    1 <= part <= parts,
    f'shard={text!r} must have the form 3/16 (the third of sixteen parts).',
  )
  return part, parts


def _setting(text: str) -> tuple[str, str]:
  name, equals, value = text.partition('=')
  if not equals:
    raise argparse.ArgumentTypeError(
      f'set={text!r} must have the form NAME=VALUE, such as learning_rate=1e-4.'
    )
  return name, value
