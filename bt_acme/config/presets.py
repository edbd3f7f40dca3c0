"""Presets: named settings for scales other than the paper's.

A preset replaces defaults; settings of the user override a preset. Every preset
works for both pre-training and transfer: an agent ignores settings that it does
not have, and some settings apply only to pre-training or only to learning a
task. `presets.json` contains the presets, and entries without a purpose, which
several presets extend. This command prints all changes and their reasons, of
the named presets or of all:

  python -m bt_acme.config.presets [NAME ...]
"""

import argparse
import json
import pathlib
import signal
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bt_acme.config import agent, names, transfer
from bt_acme.config import run as run_config


class Preset(NamedTuple):
  """The purpose of a preset and the settings that it changes.

  Attributes:
    purpose: a description that follows the word "for"; empty for a part of
      presets.
    settings: settings for every agent that has them.
    pretraining_settings: settings for the pre-training agent, NGU.
    task_settings: settings for the agents that learn a task, R2D2 and BT.
    reasons: the reason for the value of a setting, by its name.
  """

  purpose: str = ''
  settings: Mapping[str, Any] = {}
  pretraining_settings: Mapping[str, Any] = {}
  task_settings: Mapping[str, Any] = {}
  reasons: Mapping[str, str] = {}

  @property
  def all_settings(self) -> list[tuple[str, Any, str]]:
    """Tuples of setting, value, and a text that names the agents if limited."""
    return [
      (setting, value, agents)
      for settings, agents in (
        (self.settings, ''),
        (self.pretraining_settings, ', in pre-training'),
        (self.task_settings, ', not in pre-training'),
      )
      for setting, value in settings.items()
    ]


# Between the 40,000 actor steps of the behaviors with which `minigrid` was
# chosen and the 2,000,000 of `minigrid-explorer`.
_LONG_PRETRAINING = 500_000

_ENTRIES = json.loads(pathlib.Path(__file__).with_suffix('.json').read_text())


def _read(name: str) -> Preset:
  """Reads an entry, which extends the entry that it names as `like`."""
  entry = dict(_ENTRIES[name])
  base = _read(entry.pop('like')) if 'like' in entry else Preset()
  own = Preset(**entry)
  merged = zip(base[1:], own[1:], strict=True)
  return Preset(own.purpose, *({**old, **new} for old, new in merged))


PRESETS: Mapping[str, Preset] = {
  name: _read(name) for name, entry in _ENTRIES.items() if 'purpose' in entry
}


def get(
  name: str, config_class: type, given: names.Values | None = None
) -> dict[str, Any]:
  """Returns those settings of a preset that a configuration has.

  Settings that have no effect with those of the user are omitted.

  Args:
    name: the name of the preset.
    config_class: the configuration, such as `NGUConfig`, possibly with
      additional groups.
    given: the settings of the user, which override those of the preset.

  Raises:
    ValueError: for an unknown preset.
  """
  preset = _preset(name)
  explores = hasattr(config_class, 'intrinsic')
  settings = {
    **preset.settings,
    **(preset.pretraining_settings if explores else preset.task_settings),
  }
  known = names.defaults_of(config_class)
  values = {**known, **settings, **(given or {})}
  unused = [*transfer.unused(values)]
  if values.get('lp_launch_type') == 'in_process':
    unused += run_config.OF_NODES
  return {k: v for k, v in settings.items() if k in known and k not in unused}


def automatic(torso: str, pretraining_steps: int = 0) -> str:
  """Returns the preset that `preset='auto'` selects in the Python interface.

  Args:
    torso: the torso that `NetworkConfig.torso='auto'` selects.
    pretraining_steps: the number of actor steps for which the behavior to
      transfer was pre-trained; 0 without such a behavior.
  """
  if torso == 'nature':
    return 'atari_small'
  at_length = pretraining_steps >= _LONG_PRETRAINING
  return 'minigrid_pretrained' if at_length else 'minigrid'


def describe(name: str) -> str:
  """Returns the purpose of a preset, and each change with its reason."""
  preset = _preset(name)
  defaults = {
    **names.defaults_of(agent.NGUConfig),
    **names.defaults_of(agent.BTConfig),
    **names.to_dict(run_config.RunConfig()),
  }
  changes = [
    f'  {setting}={value} instead of {defaults[setting]}{agents}'
    f'\n    {preset.reasons.get(setting, "")}'.rstrip()
    for setting, value, agents in preset.all_settings
  ]
  title = f'{name}, for {preset.purpose}:'
  return '\n'.join([title, *(changes or ['  No changes.'])])


def _preset(name: str) -> Preset:
  if name not in PRESETS:
    raise ValueError(
      f'preset={name!r} is unknown: {names.suggest(name, sorted(PRESETS))}'
    )
  return PRESETS[name]


def main(arguments: Sequence[str] | None = None) -> None:
  """Prints the named presets, or all."""
  command = 'python -m bt_acme.config.presets'
  summary = 'Prints the changes of presets and their reasons.'
  parser = argparse.ArgumentParser(prog=command, description=summary)
  parser.add_argument('names', metavar='NAME', nargs='*', help='a preset')
  chosen = parser.parse_args(arguments).names or PRESETS
  try:
    print('\n\n'.join(map(describe, chosen)))
  except ValueError as error:
    parser.error(str(error))


if __name__ == '__main__':
  signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # As with `| head`.
  main()
