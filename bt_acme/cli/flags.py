"""Turns the settings of `bt_acme.config` into flags of a script.

The name, default, type and help of each flag are those of the setting, so that
a setting is written down once. A script reads

  flags.define(config.BTConfig)

  def main(argv):
    settings = flags.from_flags(config.BTConfig)
    ...

  if __name__ == '__main__':
    flags.run_main(main, config.BTConfig)

A mistake of the user ends the script with one line and exit code 2.
"""

import functools
import sys
import traceback
from typing import Any, Callable, Dict, List, Optional

from absl import app, flags, logging

from bt_acme.cli import help_text
from bt_acme.config import checks, names

FLAGS = flags.FLAGS
Main = Callable[[List[str]], Optional[int]]

_USAGE_ERROR = 2
# Launchpad defines it as well, with its own types only; whichever is imported
# later would refuse to.
_ALSO_LAUNCHPADS = 'lp_launch_type'
_DEFINE: Dict[type, Callable[..., Any]] = {
  bool: flags.DEFINE_bool,
  int: flags.DEFINE_integer,
  float: flags.DEFINE_float,
  str: flags.DEFINE_string,
}


def define(config_class: type) -> None:
  """Defines a flag for each setting of a configuration.

  Args:
    config_class: a dataclass whose fields are groups of settings.

  Raises:
    ValueError: for two settings of one name, or a setting without declaration.
  """
  defaults = names.defaults_of(config_class)
  for name, field in names.settings_of(config_class).items():
    default = defaults[name]
    _DEFINE[type(default)](
      name,
      default,
      checks.declaration_of(field).help,
      flag_values=FLAGS,
      allow_override=name == _ALSO_LAUNCHPADS,
    )


def from_flags(
  config_class: type, overrides: Optional[names.Values] = None
) -> Any:
  """Builds a configuration from the flags.

  Args:
    config_class: the class that was given to `define`.
    overrides: other defaults, by setting; a flag that the user sets wins.

  Returns:
    A `config_class`.

  Raises:
    ValueError: for a value that a group refuses, or an unknown override.
  """
  values = dict(overrides or {})
  for name in names.settings_of(config_class):
    if FLAGS[name].present or name not in values:
      values[name] = FLAGS[name].value
  return names.build(config_class, values)


def run_main(main: Main, config_class: Optional[type] = None) -> None:
  """Parses the flags, runs `main`, and exits with the code that it returns.

  If `main` raises a ValueError, the script writes one line, `error: ...`, and
  exits with code 2; `--verbosity=1` shows the traceback as well.

  Args:
    main: the function that takes what is left of the command line.
    config_class: the class that was given to `define`, for `--help`.
  """
  app.run(
    functools.partial(_run, main),
    flags_parser=functools.partial(_parse, config_class),
  )


def _run(main: Main, argv: List[str]) -> Optional[int]:
  if not FLAGS['verbosity'].present:
    logging.set_verbosity(logging.WARNING)
  try:
    return main(argv)
  except ValueError as error:
    if logging.get_verbosity() >= logging.DEBUG:
      traceback.print_exc()
    return _usage_error(str(error))


def _parse(config_class: Optional[type], argv: List[str]) -> List[str]:
  """Parses the flags; ends the process after `--help` or a mistake."""
  options = argv[1 : argv.index('--')] if '--' in argv else argv[1:]
  if {'--help', '-help', '-h'} & set(options):
    print(help_text.make(argv[0], config_class))
    sys.exit(0)
  try:
    rest: List[str] = FLAGS(argv)
  except flags.Error as error:
    sys.exit(_usage_error(f'{error} (--help lists all flags)'))
  if len(rest) > 1:
    sys.exit(
      _usage_error(
        f'{rest[1]!r} is no flag: write --NAME=VALUE. --help lists all flags.'
      )
    )
  return rest


def _usage_error(message: str) -> int:
  one_line = ' '.join(message.split())
  print(f'error: {one_line}', file=sys.stderr)
  return _USAGE_ERROR
