"""Tests the learner's transfers, devices, publishing and released batches."""

import chex
import jax
import numpy as np
import pytest
from acme.utils import loggers

from bt_acme.agents import acme_learner as learner_lib
from bt_acme.replay import sampler as sampler_lib
from tests import python, sharing
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')

B = 4


def make_agent():
  learner = {'target_update_period': 2, 'publish_period': 2}
  return fakes.changed(fakes.make_agent('r2d2'), learner=learner)


def make_learner(agent, samples, **kwargs):
  return learner_lib.Learner(agent, jax.random.key(0), samples, **kwargs)


def test_a_batch_is_requested_before_the_previous_step_finishes():
  logger = loggers.InMemoryLogger()  # One row per finished step.
  finished = []

  def samples():
    for sample in fakes.make_samples(5):
      finished.append(len(logger.data))
      yield sample

  learner = make_learner(make_agent(), samples(), logger=logger)
  for number in range(5):
    learner.step()
    assert len(logger.data) == number  # At most one step is unfinished.
  assert finished == [0, 0, 1, 2, 3]
  learner.flush()
  assert len(logger.data) == learner.learner_steps == 5


def test_keys_that_a_device_has_truncated_are_refused():
  (sample,) = fakes.make_samples(1)
  sample = sample._replace(keys=jax.device_put(sample.keys))
  learner = make_learner(make_agent(), iter([sample]))
  with pytest.raises(ValueError, match='uint32, not .* device_prefetch=False'):
    learner.step()


def test_metrics_of_sampling_and_target_updates():
  logger = loggers.InMemoryLogger()
  samples = fakes.make_samples(5)
  samples[3] = samples[3]._replace(keys=np.array([1, 7, 8, 8], np.uint64))
  learner = make_learner(make_agent(), iter(samples), logger=logger)
  for _ in samples:
    learner.step()
  learner.flush()
  rows = logger.data
  assert [row['target_copies'] for row in rows] == [0, 1, 1, 2, 2]
  assert [row['first_visit_share'] for row in rows] == [1, 0, 0, 0.5, 0]
  # All sequences were equally likely.
  for row in rows:
    np.testing.assert_allclose(row['priority_over_uniform'], 1)


def test_parameters_are_those_of_the_step_that_published_them():
  """The next step has already started when the parameters are read."""
  samples = fakes.make_samples(5)
  learner = make_learner(make_agent(), iter(samples))
  initial, states, published = learner.variables, [], []
  before = jax.tree.map(np.copy, initial)
  for _ in samples:
    learner.step()
    states.append(learner.save()['arrays'].params)
    published.append(learner.variables.agent)
  assert published[0] is published[1] is initial.agent
  for number, expected in ((2, 1), (3, 1), (4, 3)):
    chex.assert_trees_all_equal(published[number], states[expected])
  learner.flush()
  chex.assert_trees_all_equal(learner.variables.agent, states[-1])
  # Each step reuses the learner's buffers, but no published parameters.
  chex.assert_trees_all_equal(initial, before)
  with pytest.raises(AttributeError):
    learner.get_variables(['critic'])


def test_initial_parameters_are_used():
  agent = make_agent()
  params = fakes.variables_of(agent, 5).agent
  learner = make_learner(agent, iter(()), initial_params=params)
  chex.assert_trees_all_equal(learner.variables.agent, params)
  # R2D2 has no networks of an intrinsic reward.
  arrays = learner.save()['arrays']
  assert arrays.intrinsic_params == {} and arrays.intrinsic_opt_state == ()


def finish(learner, num_steps):
  """Takes steps; returns the final state and the largest priority."""
  for _ in range(num_steps):
    learner.step()
  learner.flush()
  return learner.save()['arrays'], learner.largest_priority()


# tests/learner_test.py restores NGU.
def test_a_restored_learner_continues_as_if_uninterrupted():
  agent, samples = make_agent(), iter(fakes.make_samples(5))
  learner = make_learner(agent, samples)
  for _ in range(2):
    learner.step()
  state, rest = learner.save(), list(samples)
  # A learner without steps has the priority 1.
  assert state['values']['max_priority'] != 1
  learner._dataset = iter(rest)
  expected = finish(learner, len(rest))
  fresh = learner_lib.Learner(agent, jax.random.key(7), iter(rest))
  fresh.restore(state)
  assert fresh.learner_steps == int(state['arrays'].learner_steps) == 2
  # Without the state of the optimizer, these steps would differ.
  chex.assert_trees_all_equal(finish(fresh, len(rest)), expected)


def aligned_copy(array):
  """Returns a copy in aligned memory, which JAX on a CPU uses directly."""
  memory = np.empty(array.nbytes + 64, np.uint8)
  start = -memory.ctypes.data % 64
  copy = memory[start : start + array.nbytes].view(array.dtype)
  copy = copy.reshape(array.shape)
  copy[...] = array
  return copy


class Spoiling(sampler_lib.SequenceSampler):
  """A sampler that overwrites a batch as soon as it is released."""

  def __init__(self, samples):
    self._samples = iter(samples)
    self.num_spoiled = 0

  def __next__(self):
    sample = next(self._samples)
    return sample._replace(batch=jax.tree.map(aligned_copy, sample.batch))

  def release(self, sample):
    self.num_spoiled += 1
    for array in jax.tree.leaves(sample.batch):
      array.fill(77)


def test_a_batch_is_released_when_no_device_reads_it_any_more():
  agent, samples = make_agent(), fakes.make_samples(4)
  sampler = Spoiling(samples)
  learner = make_learner(agent, sampler)
  for number in range(len(samples)):
    learner.step()
    assert sampler.num_spoiled == number  # The last batch is still in use.
  learner.flush()
  assert sampler.num_spoiled == len(samples)
  expected, _ = finish(make_learner(agent, iter(samples)), len(samples))
  chex.assert_trees_all_equal(learner.save()['arrays'], expected)


def train_on_devices():
  """Restores a learner; must run in a process with four devices."""
  with pytest.MonkeyPatch.context() as monkeypatch:
    sharing.share_compiled_functions(monkeypatch)
    one, agent = (
      fakes.changed(make_agent(), learner={'num_devices': n}) for n in (1, 0)
    )
    samples = fakes.make_samples(4)
    expected, expected_priority = finish(make_learner(one, iter(samples)), 4)
    learner = make_learner(agent, iter(samples))
    for _ in range(2):
      learner.step()
    fresh = learner_lib.Learner(agent, jax.random.key(7), iter(samples[2:]))
    fresh.restore(learner.save())
    assert fresh.learner_steps == 2
    for x in jax.tree.leaves(fresh.template):
      assert len(x.sharding.device_set) == 4
    found, max_priority = finish(fresh, 2)
    # Without the state of the optimizer, these steps would differ.
    chex.assert_trees_all_close(found, expected, rtol=1e-4, atol=2e-6)
    # The largest priority is that of all steps.
    np.testing.assert_allclose(max_priority, expected_priority, rtol=1e-4)
    assert max_priority > 1


def test_a_learner_on_four_devices_is_restored_and_equals_one_on_one():
  python.run_on_four_devices(
    'from tests.agents import acme_learner_test as t; t.train_on_devices()'
  )
