"""Makes the settings of `bt_acme.config` flags of a launch script.

Name, default, type and help of each flag are those of the dataclass field, so
a setting is written down once. A launch script reads

  flags.define(config.BTConfig)

  def main(argv):
    settings = flags.from_flags(config.BTConfig)
    ...

  if __name__ == '__main__':
    flags.run_main(main, config.BTConfig)

What the user got wrong ends it with one line and exit code 2.
"""

import dataclasses
import inspect
import re
import sys
import textwrap
import traceback
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from absl import app, flags, logging

FLAGS = flags.FLAGS

_USAGE_ERROR = 2
_DEFINE: Dict[type, Callable[[str, Any, str], Any]] = {
  bool: flags.DEFINE_bool,
  int: flags.DEFINE_integer,
  float: flags.DEFINE_float,
  str: flags.DEFINE_string,
}


def define(config_class: type) -> None:
  """Defines a flag for each setting of a configuration.

  Args:
    config_class: a dataclass whose fields are dataclasses of plain settings,
      each described under `Attributes:` in its docstring.

  Raises:
    ValueError: for two settings of one name, or one without a description.
  """
  defined = set()
  for _, group in _groups(config_class):
    descriptions = _descriptions(type(group))
    for field in dataclasses.fields(group):
      if field.name in defined:
        raise ValueError(f'Two settings are named {field.name}.')
      if field.name not in descriptions:
        raise ValueError(
          f'{type(group).__name__} does not describe {field.name} under '
          '`Attributes:`.'
        )
      defined.add(field.name)
      default = getattr(group, field.name)
      help_text = descriptions[field.name]
      _DEFINE[type(default)](field.name, default, help_text)


def from_flags(
  config_class: type, overrides: Optional[Mapping[str, Any]] = None
) -> Any:
  """Builds a configuration from the flags.

  Args:
    config_class: which was given to `define`.
    overrides: other defaults, by setting; what the user gives wins.

  Returns:
    A `config_class`.

  Raises:
    ValueError: for a value that its dataclass refuses, or an unknown override.
  """
  overrides = overrides or {}
  groups = dict(_groups(config_class))
  names = {
    field.name
    for group in groups.values()
    for field in dataclasses.fields(group)
  }
  unknown = sorted(set(overrides) - names)
  if unknown:
    raise ValueError(f'{config_class.__name__} has no setting named {unknown}.')

  def value(name: str) -> Any:
    if FLAGS[name].present or name not in overrides:
      return FLAGS[name].value
    return overrides[name]

  return config_class(
    **{
      group_name: type(group)(
        **{field.name: value(field.name) for field in dataclasses.fields(group)}
      )
      for group_name, group in groups.items()
    }
  )


def run_main(
  main: Callable[[List[str]], Optional[int]],
  config_class: Optional[type] = None,
) -> None:
  """Parses the flags, runs `main`, and exits with the code that it returns.

  A ValueError of `main` is one line, `error: ...`, and exit code 2; with
  `--verbosity=1` its traceback is shown as well.

  Args:
    main: takes what is left of the command line.
    config_class: which was given to `define`; `--help` lists its settings.
  """

  def run(argv: List[str]) -> Optional[int]:
    if not FLAGS['verbosity'].present:
      logging.set_verbosity(logging.WARNING)
    try:
      return main(argv)
    except ValueError as error:
      if logging.get_verbosity() >= logging.DEBUG:
        traceback.print_exc()
      return _usage_error(str(error))

  def parse(argv: List[str]) -> List[str]:
    options = argv[1 : argv.index('--')] if '--' in argv else argv[1:]
    if {'--help', '-help', '-h'} & set(options):
      print(_help(argv[0], config_class))
      sys.exit(0)
    try:
      rest = FLAGS(argv)
    except flags.Error as error:
      sys.exit(_usage_error(f'{error} (--help lists all flags)'))
    if len(rest) > 1:
      sys.exit(
        _usage_error(f'{rest[1]!r} is no flag: write --NAME=VALUE, see --help.')
      )
    return rest

  app.run(run, flags_parser=parse)


def _usage_error(message: str) -> int:
  one_line = ' '.join(message.split())
  print(f'error: {one_line}', file=sys.stderr)
  return _USAGE_ERROR


def _groups(config_class: type) -> Iterator[Tuple[str, Any]]:
  """Name and defaults of each group of settings."""
  for field in dataclasses.fields(config_class):
    yield field.name, field.default


def _docstring(documented: Any) -> str:
  return inspect.getdoc(documented) or ''


def _descriptions(group_class: type) -> Dict[str, str]:
  """What the `Attributes:` of a docstring say, by attribute."""
  _, _, attributes = _docstring(group_class).partition('Attributes:\n')
  # An entry begins at an indent of two; deeper lines go on with it.
  entries = re.findall(
    r'^  (\w+): (.*(?:\n(?:    .*)?)*)', attributes, re.MULTILINE
  )
  return {name: ' '.join(text.split()) for name, text in entries}


def _help(script: str, config_class: Optional[type]) -> str:
  """All flags of a script: its own, then the settings, group by group."""
  paragraphs = [_docstring(sys.modules['__main__']) or script]
  own = {flag.name: flag for flag in FLAGS.get_key_flags_for_module(script)}
  paragraphs.append(_help_group('This script:', own.values()))
  for _, group in _groups(config_class) if config_class else ():
    title = _docstring(type(group)).partition('\n')[0]
    names = [field.name for field in dataclasses.fields(group)]
    paragraphs.append(_help_group(title, [FLAGS[name] for name in names]))
  paragraphs.append("--helpfull lists Abseil's and Launchpad's own flags, too.")
  return '\n\n'.join(paragraphs)


def _help_group(title: str, group: Any) -> str:
  lines = [title]
  for flag in group:
    lines.append(f'  --{flag.name}={flag.value}')
    lines.append(
      textwrap.fill(
        flag.help or '', 80, initial_indent=' ' * 6, subsequent_indent=' ' * 6
      )
    )
  return '\n'.join(lines)
