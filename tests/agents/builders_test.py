"""Tests the builders in dm-acme's environment loop with real Reverb."""

import acme
import jax
import numpy as np
import pytest
import reverb
from acme import specs, wrappers
from acme.agents.jax import builders
from acme.utils import counting, loggers

from bt_acme import agents, behaviors
from bt_acme import config as config_lib
from tests import python
from tests.agents import fakes
from tests.launch import scripts

pytestmark = pytest.mark.usefixtures('shared_functions')


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


def test_a_builder_refuses_other_environments_than_images_and_actions():
  class Floats(fakes.MarkedEnvironment):
    def observation_spec(self):
      return specs.Array((8, 8, 3), np.float32)

  wrapped = wrappers.ObservationActionRewardWrapper(fakes.MarkedEnvironment())
  for environment, kind in ((Floats(), 'float32'), (wrapped, 'OAR')):
    with pytest.raises(
      ValueError, match=f"env='x' has .*{kind}.* uint8 images"
    ):
      agents.spec_of(environment, 'x')


@pytest.fixture(name='run')
def make_run(monkeypatch):
  """Returns a learner, its logger, and a loop with an actor and an adder."""
  builder = make_builder('ngu')
  environment = fakes.MarkedEnvironment()
  server = reverb.Server(
    builder.make_replay_tables(specs.make_environment_spec(environment)),
    port=None,
  )
  client = reverb.Client(f'localhost:{server.port}')
  dataset = builder.make_dataset_iterator(client)
  logger = loggers.InMemoryLogger()
  # Acme's layouts do not pass a logger.
  monkeypatch.setattr(loggers, 'make_default_logger', lambda *_, **__: logger)
  learner = builder.make_learner(
    jax.random.key(0), builder.networks, dataset, client, counting.Counter()
  )
  actor = builder.make_actor(
    jax.random.key(1),
    builder.make_policy(0.3),
    builder.make_adder(client),
    learner,
  )
  loop = acme.EnvironmentLoop(
    environment, actor, logger=loggers.InMemoryLogger()
  )
  yield learner, logger, loop, dataset
  dataset.stop()
  server.stop()


# The distributed layout below has the builder of BT, which contains R2D2's.
def test_acts_and_learns_in_an_environment_loop(run):
  learner, logger, loop, dataset = run
  before = learner.get_variables(['agent'])[0]
  for _ in range(30):
    loop.run_episode()
    while dataset.ready(0.05):
      learner.step()
  learner.flush()
  rows = logger.data
  assert len(rows) == learner.learner_steps >= 3
  assert rows[-1]['learner_steps'] == len(rows)
  assert rows[-1]['replay_size'] >= 10
  assert all(np.isfinite(list(row.values())).all() for row in rows)
  after, intrinsic = learner.get_variables(['agent', 'intrinsic'])
  changed = jax.tree.map(lambda x, y: (x != y).any(), before, after)
  assert all(jax.tree.leaves(changed))
  assert all(isinstance(x, np.ndarray) for x in jax.tree.leaves(after))
  assert intrinsic
  assert learner.largest_priority() > 1


def test_a_builder_refuses_the_arguments_of_another():
  ngu, r2d2 = fakes.make_config(config_lib.NGUConfig), fakes.make_config()
  for build, other in ((agents.NGUBuilder, r2d2), (agents.R2D2Builder, ngu)):
    with pytest.raises(
      ValueError, match='config is a .* but this builder needs'
    ):
      build(other, fakes.SPEC)
  spec = specs.make_environment_spec(fakes.MarkedEnvironment())
  with pytest.raises(ValueError, match='acme.specs.EnvironmentSpec. Pass the'):
    agents.R2D2Builder(r2d2, spec)


def test_the_builder_has_acmes_interface():
  builder = make_builder('r2d2')
  assert isinstance(builder, builders.ActorLearnerBuilder)
  with pytest.raises(ValueError, match='variable_source=None'):
    builder.make_actor(jax.random.key(0), builder.make_policy())
  with pytest.raises(ValueError, match="adder='sink' is not a sink"):
    builder.make_actor(jax.random.key(0), builder.make_policy(), 'sink')
  with pytest.raises(ValueError, match='policy_network=.* of make_policy'):
    builder.make_actor(jax.random.key(0), len, variable_source=builder)
  assert builder.make_policy().epsilon == 0.01


_LAYOUT = """
import sys, time
import bt_acme
import launchpad as lp
from acme import specs, wrappers
from acme.jax.layouts import distributed_layout
from bt_acme.runtime import launcher, supervisor
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
    num_actors=1,
    evaluator_factories=[distributed_layout.default_evaluator_factory(
      make_environment, make_networks,
      lambda networks: builder.make_policy(evaluation=True))],
    checkpointing_config=distributed_layout.CheckpointingConfig(
      directory=sys.argv[1], add_uid=False),
  ).build()
  counter = program.groups['counter'][0].create_handle()
  program.add_node(lp.PyNode(watch, counter), label='coordinator')
  sys.exit(launcher.launch(program, workdir=sys.argv[1],
    launch_type='local_mt', rules=supervisor.Rules(grace_seconds=2.0)))
"""


def test_the_distributed_layout_of_acme_accepts_the_builder(tmp_path):
  script = tmp_path / 'layout.py'
  script.write_text(_LAYOUT)
  done = python.check(
    *(script, tmp_path), env={**scripts.ENVIRONMENT, 'HOME': str(tmp_path)}
  )
  for count in ('actor_steps', 'evaluator_steps', 'learner_learner_steps'):
    assert count in done.stdout
