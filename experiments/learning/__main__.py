"""Does each part learn what it is for? Short runs on small worlds, over seeds.

Four claims, each about a few algorithms on one world:

  memory     R2D2 recalls a sign, by Q(lambda) and by Retrace; the same agent
             without an LSTM does not.
  coverage   What NGU and RND learn without rewards visits more cells in an
             episode than a random policy does, and more than what is learned
             from a constant reward.
  transfer   Behavior transfer of that NGU policy solves a task within a budget
             in which epsilon-greedy and ez-greedy do not find its reward.
  deceptive  Where the reward punishes what the behavior does, behavior transfer
             ends above the behavior and above fine-tuning it.

Each run is one process with one thread, and its seed reproduces it exactly.
The folder keeps one file for each finished run, which is not run again.
"""

import os
import pathlib
from typing import List

from absl import flags as absl_flags

from bt_acme.cli import flags
from experiments.learning import claims, pool, report

FLAGS = absl_flags.FLAGS
absl_flags.DEFINE_list('claims', list(claims.CLAIMS), f'Of {claims.CLAIMS}.')
absl_flags.DEFINE_integer('seeds', 5, 'Seeds of each algorithm, at least two.')
absl_flags.DEFINE_integer('jobs', os.cpu_count() or 1, 'Runs at a time.')
absl_flags.DEFINE_string('folder', 'runs/learning', 'Where results go.')


def _check_flags() -> None:
  unknown = sorted(set(FLAGS.claims) - set(claims.CLAIMS))
  if unknown:
    raise ValueError(
      f'claims={unknown} are unknown: choose from {claims.CLAIMS}.'
    )
  if FLAGS.seeds < 2:
    raise ValueError(
      f'seeds={FLAGS.seeds} must be at least 2, because a single seed does not '
      'tell how far a result is from luck.'
    )
  if FLAGS.jobs < 1:
    raise ValueError(f'jobs={FLAGS.jobs} must be positive.')


def main(argv: List[str]) -> int:
  del argv
  _check_flags()
  folder = str(pathlib.Path(FLAGS.folder).absolute())
  pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
  runs = claims.runs()
  reported = [run for run in runs if run.claim in FLAGS.claims]
  needed = [run.behavior for run in reported if run.behavior]
  pretraining = [run for run in runs if run in needed]
  # Behaviors come first, because other runs transfer them.
  for phase in (pretraining, [r for r in reported if r not in pretraining]):
    pairs = [(run, seed) for seed in range(FLAGS.seeds) for run in phase]
    pool.complete(pairs, folder, FLAGS.jobs)
  text = report.report(
    reported, FLAGS.seeds, lambda run, seed: pool.result(run, seed, folder)
  )
  (pathlib.Path(folder) / 'report.md').write_text(text + '\n')
  print(text)
  return 0


if __name__ == '__main__':
  flags.run_main(main)
