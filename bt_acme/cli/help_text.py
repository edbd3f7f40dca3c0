"""The text of `--help`: a script's own flags, then its settings by group."""

import dataclasses
import inspect
import sys
import textwrap
from typing import Iterable, Optional

from absl import flags

from bt_acme.config import names

_INDENT = ' ' * 6


def make(script: str, config_class: Optional[type] = None) -> str:
  """Returns the text for a script, whose docstring comes first.

  Args:
    script: the path of the script, whose own flags are listed.
    config_class: the configuration whose settings are listed too, if any.
  """
  own = flags.FLAGS.get_key_flags_for_module(script)
  paragraphs = [inspect.getdoc(sys.modules['__main__']) or script]
  if own:
    paragraphs.append(_group('This script:', own))
  for group in names.groups(config_class).values() if config_class else ():
    title = (inspect.getdoc(type(group)) or '').partition('\n')[0]
    settings = [flags.FLAGS[f.name] for f in dataclasses.fields(group)]
    paragraphs.append(_group(title, settings))
  paragraphs.append("--helpfull lists Abseil's and Launchpad's own flags, too.")
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
