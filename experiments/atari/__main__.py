"""Real Atari, learned on two cores.

  python -m experiments.atari learn --game=road_runner
  python -m experiments.atari explore

`learn` trains R2D2 on a game and draws its scores beside those of a random
agent and of a human. `explore` pre-trains NGU on Montezuma's Revenge without
rewards, and draws which rooms it visits beside those of a random policy. Both
train with the launch scripts and `--preset=atari_small`. Ctrl-C ends a run, and
the same command resumes it. `--draw_only` trains nothing.

`python -m experiments.atari learn --help` lists the flags of a command.
"""

import functools
import sys
from typing import List, NoReturn

from bt_acme.cli import flags
from bt_acme.config import names
from experiments.atari import exploring, learning

_COMMANDS = {'learn': learning, 'explore': exploring}


def run() -> None:
  """Runs the command that the command line names, and exits."""
  script, *arguments = sys.argv
  command = arguments[0] if arguments else ''
  if command in _COMMANDS:
    module = _COMMANDS[command]
    sys.argv = [script, *arguments[1:]]
    flags.define(module.Settings)
    flags.run_main(module.main, module.Settings)
  # The flags of a command mean nothing without it.
  sys.argv = [script, *({'--help', '-h'} & set(arguments))]
  flags.run_main(functools.partial(_refuse, command))


def _refuse(command: str, argv: List[str]) -> NoReturn:
  del argv
  raise ValueError(
    f'command={command!r} is unknown: '
    + names.suggest(command, sorted(_COMMANDS))
  )


if __name__ == '__main__':
  run()
