"""Defines the settings of `bt_acme.config` as flags of a script.

The field of a setting provides the name, default and type of its flag, and the
docstring of its class provides the help. A typical script:

  flags.define(config.BTConfig)

  def main(argv):
    settings = flags.from_flags(config.BTConfig)
    ...

  if __name__ == '__main__':
    flags.run_main(main, config.BTConfig)

A user error ends the script with a one-line message and exit code 2, a full
disk or a learner that diverges with exit code 1.
"""

import dataclasses
import functools
import inspect
import os
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from absl import app, flags, logging

from bt_acme import files
from bt_acme.config import checks, names
from bt_acme.runtime import output

FLAGS = flags.FLAGS
_HELP = textwrap.TextWrapper(
  80, break_on_hyphens=False, initial_indent=' ' * 6, subsequent_indent=' ' * 6
)
Main = Callable[[list[str]], int | None]

_FAILURE, _USAGE_ERROR = 1, 2
# Launchpad also defines this flag, but with fewer values. Unless overriding is
# allowed, the second definition raises an error.
_ALSO_LAUNCHPADS = 'lp_launch_type'
_DEFINE: dict[type, Callable[..., Any]] = {
  bool: flags.DEFINE_bool,
  int: flags.DEFINE_integer,
  float: flags.DEFINE_float,
  str: flags.DEFINE_string,
}


def define(config_class: type) -> None:
  """Defines a flag for each setting of a configuration.

  Args:
    config_class: a dataclass whose fields are groups of settings.
  """
  for group in vars(config_class()).values():
    for name, text in checks.help_of(type(group)).items():
      default = getattr(group, name)
      _DEFINE[type(default)](
        name,
        default,
        text,
        flag_values=FLAGS,
        allow_override=name == _ALSO_LAUNCHPADS,
      )


def given(config_class: type) -> dict[str, Any]:
  """Returns the values of the flags that the user has set, by setting.

  A shell does not replace the ~ in `--workdir=~/runs`, so this function does.
  """
  return {
    name: _with_home(FLAGS[name].value)
    for name in names.defaults_of(config_class)
    if FLAGS[name].present
  }


def _with_home(value: Any) -> Any:
  if not isinstance(value, str):
    return value
  return ','.join(
    os.path.expanduser(part) if part.startswith('~/') else part
    for part in value.split(',')
  )


def from_flags(
  config_class: type, overrides: names.Values | None = None
) -> Any:
  """Builds a configuration from the flags.

  Args:
    config_class: the class that was passed to `define`.
    overrides: defaults by setting, for the flags that the user has not set.

  Returns:
    An instance of `config_class`.

  Raises:
    ValueError: if a value is invalid or an override is unknown.
  """
  return names.build(config_class, {**(overrides or {}), **given(config_class)})


def run_main(main: Main, config_class: type | None = None) -> None:
  """Parses the flags, runs `main`, and exits with the code that it returns.

  If `main` raises a ValueError, the script prints one line, `error: ...`, and
  exits with code 2. For a full disk or a learner that diverges, it does the
  same with code 1. `--verbosity=1` also prints the traceback.

  Args:
    main: the main function, called with the remaining command line.
    config_class: the class that was passed to `define`, for `--help`.
  """
  # Otherwise, what is printed would go to the next files that are opened.
  for name, mode in (('stdin', 'r'), ('stdout', 'w'), ('stderr', 'w')):
    if getattr(sys, name) is None:  # The caller has closed it.
      setattr(sys, name, open(os.devnull, mode))
  app.run(
    functools.partial(_run, main),
    flags_parser=functools.partial(_parse, config_class),
  )


def _run(main: Main, argv: list[str]) -> int | None:
  if not FLAGS['verbosity'].present:
    logging.set_verbosity(logging.WARNING)
  try:
    return main(argv)
  except ValueError as error:
    return _report(str(error), _USAGE_ERROR)
  except FloatingPointError as error:  # The learner has diverged.
    return _report(str(error), _FAILURE)
  except OSError as error:
    if not files.is_disk_full(error):
      raise
    advice = 'Free disk space, then rerun the same command.'
    return _report(f'{error}. {advice}', _FAILURE)


def _report(message: str, code: int) -> int:
  """Prints the exception that is being handled, and returns the exit code."""
  if logging.get_verbosity() >= logging.DEBUG:
    traceback.print_exc()
  return _error(message, code)


def _parse(config_class: type | None, argv: list[str]) -> list[str]:
  """Parses the flags; exits after `--help` or a user error."""
  options = argv[1 : argv.index('--')] if '--' in argv else argv[1:]
  if {'--help', '-help', '-h'} & set(options):
    output.show(_help(argv[0], config_class))
    sys.exit(0)
  try:
    rest: list[str] = FLAGS(argv)
    if len(rest) > 1:
      raise flags.Error(f'{rest[1]!r} is not a flag. Write --NAME=VALUE')
  except flags.Error as error:
    sys.exit(_error(f'{error} (--help lists all flags)'))
  return rest


def _error(message: str, code: int = _USAGE_ERROR) -> int:
  one_line = ' '.join(message.split())
  output.show(f'error: {one_line}', file=sys.stderr)
  return code


def _help(script: str, config_class: type | None) -> str:
  """Returns the text of `--help`: the script's own flags, then its settings."""
  own = FLAGS.get_key_flags_for_module(script)
  paragraphs = [inspect.getdoc(sys.modules['__main__']) or script]
  if own:
    paragraphs.append(_help_of_group('This script:', own))
  for group in vars(config_class()).values() if config_class else ():
    title = (inspect.getdoc(type(group)) or '').partition('\n')[0]
    settings = [FLAGS[f.name] for f in dataclasses.fields(group)]
    paragraphs.append(_help_of_group(title, settings))
  paragraphs.append('--helpfull also lists the flags of Abseil and Launchpad.')
  return '\n\n'.join(paragraphs)


def _help_of_group(title: str, group: Iterable[flags.Flag]) -> str:
  lines = [title]
  for flag in group:
    lines += [f'  --{flag.name}={flag.value}', _HELP.fill(flag.help or '')]
  return '\n'.join(lines)
