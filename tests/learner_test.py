"""Tests starting and finishing learner steps, and restoring a learner."""

import jax
import numpy as np
import pytest

from bt_acme import learner as learner_lib
from tests.agents import fakes

SEED = 5


@pytest.fixture(name='make', scope='module')
def make_random_learner(shared_functions):
  """Creates learners with random steps."""
  agent = fakes.changed(
    fakes.make_agent('ngu'),
    intrinsic={'intrinsic_window': 'spread', 'intrinsic_steps': 2},
  )

  def make(seed=SEED):
    return learner_lib.Learner(agent, jax.random.key(seed))

  return make


def learn(learner, samples):
  """Starts and finishes all steps, and returns the arrays."""
  for sample in samples:
    learner.start(sample)
  while learner.pending:
    learner.finish()
  return learner.save()['arrays']


def are_equal(one, other):
  equal = jax.tree.map(np.array_equal, one, other)
  return all(jax.tree.leaves(equal))


def test_steps_are_finished_in_order(make):
  learner, samples = make(), fakes.make_samples(3)
  for number, sample in enumerate(samples):
    keys = np.full_like(sample.keys, number)
    learner.start(sample._replace(keys=keys))
  assert learner.num_finished == 0 and learner.largest_priority() == 1
  final = learner.final_largest_priority()
  steps = [learner.finish() for _ in samples]
  assert [step.keys[0] for step in steps] == [0, 1, 2]
  assert not learner.pending and learner.num_finished == 3
  assert learner.largest_priority() == final != 1
  assert steps[0].row()['first_visit_share'] == 1 / len(samples[0].keys)
  assert all(isinstance(value, float) for value in steps[2].row().values())


def test_restore_includes_the_random_key(make):
  samples = fakes.make_samples(4)
  learner = make()
  learn(learner, samples[:2])
  saved = learner.save()
  expected = learn(learner, samples[2:])
  resumed = make(SEED + 1)
  resumed.restore(saved)
  assert are_equal(learn(resumed, samples[2:]), expected)
  # Old checkpoints have no key; the seed determines it.
  del saved['values']['key']
  for seed, is_same in ((SEED, True), (SEED + 1, False)):
    resumed = make(seed)
    resumed.restore(saved)
    assert are_equal(learn(resumed, samples[2:]), expected) == is_same


def test_restored_arrays_are_not_donated(make):
  learner = make()
  saved = learner.save()
  kept = jax.tree.map(np.copy, saved['arrays'])
  learner.restore(saved)
  # The first step sets the largest priority; a restored 1 would only decay.
  assert learner.largest_priority.value is None
  learn(learner, fakes.make_samples(2))
  assert are_equal(saved['arrays'], kept)


def test_pending_steps_are_restored(make):
  learner, sample = make(), fakes.make_samples(1)[0]
  learner.start(sample)
  resumed = make()
  resumed.restore(learner.save())
  assert not resumed.pending
  resumed.pending.extend(learner.pending)
  assert learner.finish().row() == resumed.finish().row()


def test_a_diverged_learner_raises(make):
  learner, sample = make(), fakes.make_samples(1)[0]
  sample.batch.reward.fill(np.nan)
  learner.start(sample)
  for ask in (learner.final_largest_priority, learner.finish, learner.finish):
    with pytest.raises(FloatingPointError, match='has diverged. Lower'):
      ask()
