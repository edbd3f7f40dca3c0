"""Data sets of made-up evaluations, for tests of figures."""

import numpy as np

from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, figures
from tests.experiments.paper import fake_results as fake

SUITES = {
  **fake.SUITES,
  'strategies': (fake.FAR, fake.NEAR),
  'tasks': tuple(
    f'{world}{reward}'
    for world in (fake.NEAR, fake.FAR)
    for reward in ('', ':easy', ':hard')
  ),
}
LEARNING = [arm for arm in artifacts.TITLES if arm not in artifacts.ZERO_SHOT]


def tenth(env, returns):
  """Normalizes so that worlds differ."""
  return 10 * np.asarray(returns) + (env == fake.FAR)


def curves(values, **fields):
  """A data set of runs; `values` are those of all seeds by arm and world."""
  runs, scores = [], []
  for (arm, env), seeds in values.items():
    for seed, curve in enumerate(seeds):
      runs.append(fake.run(arm, env, seed, frames_per_step=4, **fields))
      scores += fake.curve(runs[-1], curve, greedy_extra_share=abs(curve))
  return dataset_lib.Dataset(tuple(runs), tuple(scores))


def random(arms, envs, seeds=3, points=5):
  """Returns of normal distribution, by arm and world: [seeds, points]."""
  rng = np.random.default_rng(0)
  return {
    (arm, env): rng.normal(size=(seeds, points)) for arm in arms for env in envs
  }


def make(figure_id, dataset, suites=SUITES):
  """A figure of made-up runs."""
  return figures.make(figure_id, dataset, suites, tenth)


def line(panel, arm):
  """The line of an arm."""
  (found,) = [x for x in panel.lines if x.label == artifacts.TITLES[arm]]
  return found
