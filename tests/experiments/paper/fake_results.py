"""Data sets made by hand, for tests of what is computed from them."""

from experiments.harness import dataset as dataset_lib

STEPS = 1_000
FAR = 'MiniGrid-FourRooms-v0:fixed'
NEAR = 'MiniGrid-Empty-8x8-v0'
SUITES = {
  'full': (NEAR, FAR),
  'hard': (FAR,),
  'ablation': (FAR, NEAR),
  'budgets': (FAR, NEAR),
}


def run(arm, env, seed, *, stage='transfer', pretraining_steps=0, **fields):
  """A run that is done."""
  return dataset_lib.Run(
    f'{arm}/{env}/s{seed}-{pretraining_steps}',
    'laptop',
    stage,
    arm,
    env,
    seed,
    STEPS if stage == 'transfer' else 0,
    **{
      'pretraining_steps': pretraining_steps,
      'status': dataset_lib.DONE,
      'actor_steps': STEPS,
      **fields,
    },
  )


def final(one, value):
  """The evaluation after a run."""
  return dataset_lib.Score(one.run_id, dataset_lib.FINAL, STEPS, 50, value)


def curve(one, values, **columns):
  """Evaluations at equal distances, the first before any step."""
  last = len(values) - 1
  return [
    dataset_lib.Score(
      one.run_id,
      dataset_lib.EVALUATOR,
      STEPS * i // last,
      5,
      value,
      **{name: column[i] for name, column in columns.items()},
    )
    for i, value in enumerate(values)
  ]


def finals(returns):
  """A data set of final evaluations.

  Args:
    returns: the returns of all seeds, by arm and world.
  """
  runs, scores = [], []
  for (arm, env), values in returns.items():
    for seed, value in enumerate(values):
      runs.append(run(arm, env, seed))
      scores.append(final(runs[-1], value))
  return dataset_lib.Dataset(tuple(runs), tuple(scores))


def joined(*datasets):
  """All runs and scores of several data sets."""
  return dataset_lib.Dataset(
    tuple(r for d in datasets for r in d.runs),
    tuple(s for d in datasets for s in d.scores),
  )
