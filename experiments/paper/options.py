"""The command line, read: what it asks for, or why it cannot be done."""

import argparse
import pathlib
from typing import List, NamedTuple, NoReturn, Sequence, Tuple

from bt_acme.config import names
from experiments import seeds as seeds_lib
from experiments.harness import pool, runs, slots
from experiments.paper import artifacts as artifacts_lib
from experiments.paper import declarations, folders, report, scales

COMMANDS = (
  *('list', 'plan', 'work', 'status', 'gather', 'render', 'claims'),
  'publish',
)
_OF_ARTIFACTS = ('plan', 'work', 'render')  # The commands that take artifacts.
_OF_WORK = ('', 'work')  # Those that execute runs.
_OF_PARTS = (*_OF_WORK, 'plan')  # Those that take a part of the runs.


class Options(NamedTuple):
  """What is asked for.

  Attributes:
    command: one of `COMMANDS`, or empty for all that makes artifacts.
    artifacts: the ids of those that are named.
    folder: where everything goes, with its scale.
    choice: the part of the runs.
    slots: where runs take place; empty on a cluster.
    slots_text: what `slots` was read from, or each machine of a cluster has.
    shard: this worker's part of the runs, such as (3, 16).
    formats: of what is rendered.
    hours: after so long all runs are stopped.
    ray_address: of a cluster whose machines do the work; empty for this one.
    ray_python: the Python of an environment with Ray.
  """

  command: str
  artifacts: Tuple[str, ...]
  folder: folders.Folder
  choice: declarations.Choice
  slots: List[pool.Slot]
  slots_text: str
  shard: Tuple[int, int]
  formats: Tuple[str, ...]
  hours: float
  ray_address: str
  ray_python: str


def read(arguments: Sequence[str], description: str) -> Options:
  """Reads a command line.

  Args:
    arguments: its words.
    description: stands above the flags in `--help`.

  Raises:
    ValueError: if it cannot be done. Nothing is written.
  """
  given = _parser(description).parse_args(arguments)
  command, artifacts = _read_names(given.names)
  settings = {name: runs.parsed(name, value) for name, value in given.set}
  scale = _read_scale(given.scale, given.pretraining)
  path = pathlib.Path(given.folder or f'runs/paper/{scale.name}')
  seeds = seeds_lib.read(given.seeds) if given.seeds else ()
  choice = declarations.Choice(seeds, given.games, given.arms, settings)
  if command not in _OF_PARTS and any((given.seeds, given.games, given.arms)):
    raise ValueError(
      f'seeds, games, arms: `{command}` is about all runs that were asked for. '
      'Leave --seeds, --games and --arms to `plan` and `work`.'
    )
  if given.ray_address and command not in _OF_WORK:
    raise ValueError(
      f'ray_address: `{command}` starts nothing. Leave it to `work` and to '
      'artifacts.'
    )
  formats = tuple(given.format.split(','))
  report.check_formats(formats)
  given_slots = given.slots or scale.slots
  slots.parse(given_slots, [0])  # A mistake is told before anything starts.
  return Options(
    command,
    artifacts,
    folders.Folder(path, scale, tuple(settings.items())),
    choice,
    [] if given.ray_address else slots.parse(given_slots),
    given_slots,
    given.shard,
    formats,
    given.hours,
    given.ray_address,
    given.ray_python,
  )


class _Parser(argparse.ArgumentParser):
  """Reports a mistake in one line."""

  def error(self, message: str) -> NoReturn:
    raise ValueError(f'{message} (--help lists all flags)')


def _parser(description: str) -> argparse.ArgumentParser:
  parser = _Parser(
    prog='python -m experiments.paper',
    description=description,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument(
    'names', nargs='+', metavar='NAME', help='a command, or artifacts'
  )
  for flag, default, kind, text in (
    ('scale', 'smoke', str, f'one of {", ".join(scales.SCALES)}'),
    (
      *('pretraining', '', str),
      'shared: one policy for all seeds, or per_seed; by itself the scale has '
      'per_seed if it is smoke or laptop, and shared like the paper if not',
    ),
    (
      *('folder', '', str),
      'where everything goes; runs/paper/SCALE if not given',
    ),
    (
      *('seeds', '', _words),
      'the seeds, separated by commas, instead of the scale`s',
    ),
    ('games', '', _words, 'only these environments, separated by commas'),
    ('arms', '', _words, 'only these arms, separated by commas'),
    (
      *('slots', '', str),
      'where runs take place, such as cpu:4 or gpu:0,gpu:1/2',
    ),
    (
      *('shard', '1/1', _shard),
      'the part of the runs that this worker does, such as 3/16',
    ),
    ('format', ','.join(report.FORMATS), str, 'what to render'),
    ('hours', 'inf', _hours, 'stop all after so many hours, and save'),
    (
      *('ray_address', '', str),
      'the head of a Ray cluster, as 10.0.0.1:6379: all of its machines work, '
      'each in these --slots',
    ),
    (
      *('ray_python', '.venv-ray/bin/python', str),
      'the Python of an environment with Ray, which `make ray` makes',
    ),
  ):
    parser.add_argument(f'--{flag}', default=default, type=kind, help=text)
  parser.add_argument(
    '--set',
    action='append',
    default=[],
    type=_setting,
    metavar='NAME=VALUE',
    help='a setting of all runs that have it; may be repeated',
  )
  return parser


def _read_names(given: Sequence[str]) -> Tuple[str, Tuple[str, ...]]:
  """Returns the command, empty for all of them, and the artifacts."""
  command = given[0] if given[0] in COMMANDS else ''
  artifacts = tuple(given[1:] if command else given)
  if artifacts and command and command not in _OF_ARTIFACTS:
    raise ValueError(
      f'artifact={artifacts[0]!r}: `{command}` is about all that was asked '
      'for, and takes no artifact.'
    )
  for name in artifacts:
    if name in artifacts_lib.ARTIFACTS:
      continue
    known = (*artifacts_lib.ARTIFACTS, *(() if command else COMMANDS))
    advice = names.suggest(name, known)
    raise ValueError(f'artifact={name!r} is unknown: {advice}')
  return command, artifacts


def _read_scale(name: str, pretraining: str) -> scales.Scale:
  scale = scales.get(name)
  pretraining = pretraining or scale.pretraining
  if pretraining not in scales.PRETRAINING:
    advice = names.suggest(pretraining, scales.PRETRAINING)
    raise ValueError(f'pretraining={pretraining!r} is unknown: {advice}')
  return scale._replace(pretraining=pretraining)


def _words(text: str) -> Tuple[str, ...]:
  return tuple(part for part in text.split(',') if part)


def _hours(text: str) -> float:
  hours = float(text)
  if not hours > 0:
    raise argparse.ArgumentTypeError(f'hours={hours} must be positive.')
  return hours


def _shard(text: str) -> Tuple[int, int]:
  part, _, parts = text.partition('/')
  if not (part.isdecimal() and parts.isdecimal()) or not 1 <= int(part) <= int(
    parts
  ):
    raise argparse.ArgumentTypeError(
      f'shard={text!r} must be like 3/16: the third of sixteen parts.'
    )
  return int(part), int(parts)


def _setting(text: str) -> Tuple[str, str]:
  name, equals, value = text.partition('=')
  if not equals:
    raise argparse.ArgumentTypeError(
      f'set={text!r} must be like learning_rate=1e-4.'
    )
  return name, value
