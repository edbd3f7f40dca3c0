"""Artificial datasets for tests of tables, figures and claims."""

import itertools

import numpy as np

from experiments.harness import dataset as dataset_lib
from experiments.paper import (
  artifacts,
  figures,
  normalized_scores,
  results,
  tables,
)

STEPS = 1_000
FAR = 'MiniGrid-FourRooms-v0:fixed'
NEAR = 'MiniGrid-Empty-8x8-v0'
SUITES = {
  'full': (NEAR, FAR),
  'hard': (FAR,),
  'ablation': (FAR, NEAR),
  'budgets': (FAR, NEAR),
}
ALL_SUITES = {
  **SUITES,
  'strategies': (FAR, NEAR),
  'tasks': tuple(
    f'{env}{reward}' for env in (NEAR, FAR) for reward in ('', ':easy', ':hard')
  ),
}
NOTHING = dataset_lib.Dataset((), ())


def data(runs, scores):
  """Returns a dataset."""
  return dataset_lib.Dataset(tuple(runs), tuple(scores))


def distance(env, high, low):
  """Returns the difference between two returns after normalization."""
  return float(normalized_scores.normalize(env, high)) - float(
    normalized_scores.normalize(env, low)
  )


def run(arm, env, seed, *, stage='transfer', pretraining_steps=0, **fields):
  """Returns a finished run."""
  steps = STEPS if stage == 'transfer' else 0
  fields = {'status': dataset_lib.DONE, 'actor_steps': STEPS, **fields}
  return dataset_lib.RunRow(
    f'{arm}/{env}/s{seed}-{pretraining_steps}',
    *('laptop', stage, arm, env, seed, steps),
    pretraining_steps=pretraining_steps,
    **fields,
  )


def final(one, value):
  """Returns the score of an evaluation after training."""
  return dataset_lib.Score(one.run_id, dataset_lib.FINAL, STEPS, 50, value)


def curve(one, values, **columns):
  """Returns evaluations at equal distances, the first one at step 0."""
  start = one.run_id, dataset_lib.EVALUATOR
  last = len(values) - 1
  return [
    dataset_lib.Score(
      *(*start, STEPS * i // last, 5, value),
      **{name: column[i] for name, column in columns.items()},
    )
    for i, value in enumerate(values)
  ]


def finals(returns, **fields):
  """Returns a dataset of final evaluations.

  Args:
    returns: the returns of all seeds by arm and environment.
    **fields: the arguments of `run`.
  """
  found = _by_run(returns, **fields)
  return data(found, itertools.starmap(final, found.items()))


def joined(*datasets):
  """Combines several datasets."""
  return dataset_lib.Dataset(
    *(sum(rows, ()) for rows in zip(*datasets, strict=True))
  )


def curves(values, **fields):
  """Returns a dataset of curves, given by arm and environment for all seeds."""
  found = _by_run(values, frames_per_step=4, **fields)
  scores = (
    curve(one, points, greedy_extra_share=np.abs(points))
    for one, points in found.items()
  )
  return data(found, itertools.chain(*scores))


def _by_run(values, **fields):
  """Returns what each run has, given for all seeds by arm and environment."""
  return {
    run(arm, env, seed, **fields): value
    for (arm, env), seeds in values.items()
    for seed, value in enumerate(seeds)
  }


def random(arms, envs, seeds=3, points=5):
  """Draws normally distributed returns [seeds, points] by arm and env."""
  rng = np.random.default_rng(0)
  return {
    (arm, env): rng.normal(size=(seeds, points)) for arm in arms for env in envs
  }


def figure(figure_id, dataset, suites=ALL_SUITES):
  """Makes a figure, by default with test suites."""
  found = results.Results(dataset, suites)
  return figures.Figure(artifacts.ARTIFACTS[figure_id], found)


def table(table_id, dataset, suites=artifacts.PAPER_SUITES):
  """Makes a table, by default with the paper's suites."""
  found = results.Results(dataset, suites)
  return tables.make(artifacts.ARTIFACTS[table_id], found)


def line(panel, arm):
  """Returns the line of an arm in a panel."""
  (found,) = [x for x in panel.lines if x.label == artifacts.ARMS[arm].title]
  return found
