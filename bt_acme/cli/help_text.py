"""Text of `--help`: the script's own flags, then its settings by group.

The text of a setting comes from its class in `bt_acme/config` (`flags.py`).
"""

import dataclasses
import inspect
import sys
import textwrap
from typing import Iterable, Optional

from absl import flags

from bt_acme.config import names

_INDENT = ' ' * 6


def make(script: str, config_class: Optional[type] = None) -> str:
  """Returns the help text of a script, starting with its docstring.

  Args:
    script: the path of the script.
    config_class: the configuration whose settings to list, if any.
  """
  own = flags.FLAGS.get_key_flags_for_module(script)
  paragraphs = [inspect.getdoc(sys.modules['__main__']) or script]
  if own:
    paragraphs.append(_group('This script:', own))
  for group in names.groups(config_class).values() if config_class else ():
    title = (inspect.getdoc(type(group)) or '').partition('\n')[0]
    settings = [flags.FLAGS[f.name] for f in dataclasses.fields(group)]
    paragraphs.append(_group(title, settings))
  paragraphs.append('--helpfull also lists the flags of Abseil and Launchpad.')
  return '\n\n'.join(paragraphs)


def _group(title: str, group: Iterable[flags.Flag]) -> str:
  lines = [title]
  for flag in group:
    lines.append(f'  --{flag.name}={flag.value}')
    lines.append(
      textwrap.fill(
        flag.help or '',
        80,
        break_on_hyphens=False,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
      )
    )
  return '\n'.join(lines)
