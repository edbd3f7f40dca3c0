"""Tests the builders in dm-acme's environment loop with real Reverb."""

import os
import pathlib

import pytest

pytest.importorskip('reverb', reason='needs the full environment')

# isort: split
import acme
import chex
import jax
import numpy as np
import reverb
from acme import specs
from acme.agents.jax import builders
from acme.utils import counting, loggers

from bt_acme import agents, assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.agents import builders as builders_lib
from bt_acme.agents import learner as learner_lib
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.replay import blocks, sinks
from tests import python
from tests.acting import new_sequences
from tests.agents import fakes

_ROOT = pathlib.Path(__file__).parents[2]
KINDS = ('r2d2', 'ngu', 'bt')


def make_builder(kind):
  spec = agents.spec_of(fakes.MarkedEnvironment(), 'fake')
  assert spec == fakes.SPEC
  if kind == 'ngu':
    return agents.NGUBuilder(fakes.make_config(config_lib.NGUConfig), spec)
  base = agents.R2D2Builder(fakes.make_config(), spec)
  if kind == 'r2d2':
    return base
  transfer = config_lib.TransferConfig(min_flight_probability=0.05)
  return agents.BTBuilder(
    base, [behaviors.Uniform(), behaviors.ActionRepeat()], transfer
  )


class Run:
  """An actor, a learner and a replay server in this process."""

  def __init__(self, kind):
    self.kind = kind
    builder = make_builder(kind)
    environment = fakes.MarkedEnvironment()
    self.server = reverb.Server(
      builder.make_replay_tables(specs.make_environment_spec(environment)),
      port=None,
    )
    client = reverb.Client(f'localhost:{self.server.port}')
    self.dataset = builder.make_dataset_iterator(client)
    self.logger = loggers.InMemoryLogger()
    self.counter = counting.Counter()
    self.learner = builder.make_learner(
      jax.random.key(0),
      builder.networks,
      self.dataset,
      client,
      self.counter,
      logger=self.logger,
    )
    self.actor = builder.make_actor(
      jax.random.key(1),
      builder.make_policy(0.3),
      builder.make_adder(client),
      self.learner,
    )
    self.loop = acme.EnvironmentLoop(
      environment, self.actor, logger=loggers.InMemoryLogger()
    )

  def play(self, episodes):
    for _ in self.each_batch(episodes):
      self.learner.step()

  def each_batch(self, episodes):
    """Plays episodes and yields whenever a batch is ready."""
    for _ in range(episodes):
      self.loop.run_episode()
      while self.dataset.ready(0.05):
        yield

  def close(self):
    self.dataset.stop()
    self.server.stop()


@pytest.fixture(name='run', scope='module', params=KINDS)
def make_run(request):
  run = Run(request.param)
  yield run
  run.close()


def test_acts_and_learns_in_an_environment_loop(run):
  before = run.learner.get_variables(['agent'])[0]
  run.play(30)
  run.learner.flush()
  rows = run.logger.data
  assert len(rows) == run.learner.learner_steps >= 3
  assert rows[-1]['learner_steps'] == len(rows)
  assert rows[-1]['replay_size'] >= 10
  assert all(np.isfinite(list(row.values())).all() for row in rows)
  after, intrinsic = run.learner.get_variables(['agent', 'intrinsic'])
  changed = jax.tree.map(lambda x, y: (x != y).any(), before, after)
  assert all(jax.tree.leaves(changed))
  assert all(isinstance(x, np.ndarray) for x in jax.tree.leaves(after))
  assert bool(intrinsic) == (run.learner.variables.intrinsic != {})
  assert run.learner.max_priority > 1


@pytest.mark.parametrize('bootstraps', [True, False])
@pytest.mark.parametrize('kind', ['r2d2', 'bt'])
def test_an_adder_records_the_same_as_a_sink(kind, bootstraps):
  """Acme's loop hides neither discounts nor the values of the next step."""
  acting = {'bootstrap_truncations': bootstraps}
  agent = fakes.changed(make_builder(kind).agent, acting=acting)
  builder = builders_lib.AgentBuilder(agent)
  recorder = new_sequences.Recorder(agent.config.replay)
  learner = make_learner(kind)
  actor = builder.make_actor(
    jax.random.key(1),
    builder.make_policy(0.3),
    sinks.SequenceAdder(new_sequences.make_sink(agent, recorder)),
    learner,
  )
  acme.EnvironmentLoop(
    fakes.MarkedEnvironment(), actor, logger=loggers.InMemoryLogger()
  ).run(num_episodes=20)
  batch, ends = new_sequences.assert_priorities_are_the_learners(
    agent, learner.variables, [recorder]
  )
  # Every other episode is truncated, and only some agents bootstrap there.
  assert ('truncated' in ends) == bootstraps
  over = np.array(ends) == '0'
  last = batch.valid.sum(axis=0).astype(int) - 1
  np.testing.assert_array_equal(
    batch.discount[last, np.arange(len(last))], 1 - over
  )


def test_a_restored_learner_continues_as_if_uninterrupted(run):
  run.play(5)
  statistics = reward_lib.IntrinsicStatistics(
    *np.random.default_rng(0).random([5, 2])
  )
  has_statistics = run.kind == 'ngu'
  if has_statistics:
    run.learner.statistics.put(4, statistics)
  state = run.learner.save()
  # A learner without steps has the priority 1.
  assert state['values']['max_priority'] != 1
  batches = [next(run.dataset) for _ in run.each_batch(20)]
  assert len(batches) >= 2
  expected = continued(run.learner, batches)
  fresh = learner_lib.Learner(run.learner._agent, jax.random.key(7), iter(()))
  fresh.restore(state)
  assert fresh.learner_steps == int(state['arrays'].learner_steps) >= 3
  restored = fresh.statistics.get(4, 2)
  if has_statistics:
    chex.assert_trees_all_equal(restored, statistics)
  else:
    assert restored is None
  assert fresh.statistics.get(0, 2) is None
  # Without the state of the optimizer, these steps would differ.
  chex.assert_trees_all_equal(continued(fresh, batches), expected)
  assert fresh.max_priority == run.learner.max_priority


def continued(learner, batches):
  learner._dataset = iter(batches)
  learner._priority_updater = None
  for _ in batches:
    learner.step()
  learner.flush()
  return learner.save()['arrays']


def test_the_builder_has_acmes_interface():
  builder = make_builder('r2d2')
  assert isinstance(builder, builders.ActorLearnerBuilder)
  with pytest.raises(ValueError, match='variable_source=None'):
    builder.make_actor(jax.random.key(0), builder.make_policy())
  assert builder.make_policy().epsilon == 0.01


def make_learner(kind, reward=1.0):
  """Returns a learner whose batches are zeros, except for the reward."""
  agent = make_builder(kind).agent
  batch = blocks.empty_batch(agent.config.replay, agent.replay_shapes, 4)
  for array in jax.tree.leaves(batch):
    array.fill(0)
  batch.valid.fill(1)
  batch.probability.fill(1)
  batch.reward.fill(reward)
  sample = blocks.Sample(batch, np.arange(4, dtype=np.uint64), np.ones(4), 4)
  return learner_lib.Learner(agent, jax.random.key(0), iter([sample] * 10))


def test_a_diverged_learner_raises_an_error_and_is_not_saved():
  learner = make_learner('r2d2', np.nan)
  learner.step()
  with pytest.raises(ValueError, match='the learner has diverged. Lower'):
    learner.save()
  with pytest.raises(ValueError, match='the learner has diverged. Lower'):
    learner.step()


def test_published_parameters_do_not_change():
  learner = make_learner('r2d2')
  first = learner.variables
  before = jax.tree.map(np.copy, first)
  for _ in range(2):  # The second step finishes the first step.
    learner.step()
  assert learner.variables is not first
  # The published parameters stay the same, although each step reuses the
  # learner's buffers.
  chex.assert_trees_all_equal(first, before)
  with pytest.raises(AttributeError):
    learner.get_variables(['critic'])


def test_initial_parameters_are_used():
  agent = make_builder('r2d2').agent
  params = fakes.variables_of(agent, 5).agent
  learner = learner_lib.Learner(
    agent, jax.random.key(0), iter(()), initial_params=params
  )
  assert isinstance(learner.variables, assembly.Variables)
  chex.assert_trees_all_equal(learner.variables.agent, params)


_LAYOUT = """
import sys, time
import bt_acme
import launchpad as lp
from acme import specs
from acme.jax.layouts import distributed_layout
from bt_acme.runtime import launcher
from tests.agents import builders_test, fakes

def make_environment(seed):
  return fakes.MarkedEnvironment(int(seed) % 200)

def watch(counter):
  while not lp.wait_for_stop(0.2):
    counts = counter.get_counts()
    if counts.get('learner_learner_steps', 0) >= 3 and counts.get(
        'evaluator_episodes', 0):
      print(sorted(counts))
      return

if __name__ == '__main__':
  builder = builders_test.make_builder('bt')
  make_networks = lambda spec: builder.networks
  program = distributed_layout.DistributedLayout(
    seed=0,
    environment_factory=make_environment,
    network_factory=make_networks,
    builder=builder,
    policy_network=lambda networks: builder.make_policy(0.3),
    num_actors=2,
    evaluator_factories=[distributed_layout.default_evaluator_factory(
      make_environment, make_networks,
      lambda networks: builder.make_policy(evaluation=True))],
    checkpointing_config=distributed_layout.CheckpointingConfig(
      directory=sys.argv[1], add_uid=False),
  ).build()
  counter = program.groups['counter'][0].create_handle()
  program.add_node(lp.PyNode(watch, counter), label='coordinator')
  sys.exit(launcher.launch(program, workdir=sys.argv[1],
    launch_type='local_mt', grace_seconds=2))
"""


def test_the_distributed_layout_of_acme_accepts_the_builder(tmp_path):
  script = tmp_path / 'layout.py'
  script.write_text(_LAYOUT)
  done = python.run(
    *(script, tmp_path),
    env={**os.environ, 'PYTHONPATH': str(_ROOT), 'HOME': str(tmp_path)},
  )
  assert done.returncode == 0, done.stderr
  for count in ('actor_steps', 'evaluator_steps', 'learner_learner_steps'):
    assert count in done.stdout
