r"""Evaluates an exported behavior or a run, and records a video.

  python launch/evaluate.py --behavior=runs/ngu/behavior --episodes=10 \
    --video=montezuma.webm
  python launch/evaluate.py --workdir=runs/bt --episodes=10

Returns always use the rewards of the task. For a behavior that was pre-trained
without rewards, they are the zero-shot score.
"""

import dataclasses

from bt_acme.runtime import interrupts

if __name__ == '__main__':
  interrupts.end_at_once()  # Before the imports that take seconds.

from bt_acme.cli import evaluation as evaluation_cli
from bt_acme.cli import flags


@dataclasses.dataclass(frozen=True)
class Settings:
  """All settings of this script."""

  evaluation: evaluation_cli.EvaluationConfig = (
    evaluation_cli.EvaluationConfig()
  )


def main(argv):
  """Plays the episodes."""
  del argv
  evaluation_cli.run(flags.from_flags(Settings).evaluation)
  return 0


if __name__ == '__main__':
  flags.define(Settings)
  flags.run_main(main, Settings)
