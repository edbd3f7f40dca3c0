"""The inference node compiles before it is asked for actions."""

import concurrent.futures
import dataclasses
import threading

import jax
import numpy as np
import pytest

from bt_acme.acting import behavior as behavior_lib
from bt_acme.acting import behavior_scores, vector_actor
from bt_acme.acting import inference_server as server_lib
from bt_acme.config import run as run_config
from bt_acme.core.behavior_transfer import behavior_core
from bt_acme.environments import vector
from bt_acme.runtime import inference_node
from tests.acting import inference_server_test, runs
from tests.agents import fakes
from tests.runtime import contexts

pytestmark = pytest.mark.usefixtures('shared_functions')

GROUP = 2
RUN = run_config.RunConfig(
  num_actors=1, envs_per_actor=2 * GROUP, inference='server'
)


@pytest.fixture(name='compiling', scope='module')
def record_compiling_threads():
  """Returns a list of the threads that compile, in order."""
  threads = []

  def listen(event, duration, **_):
    if 'backend_compile' in event:
      threads.append(threading.current_thread())

  # JAX has no function that removes a listener; this one does no harm.
  jax.monitoring.register_event_duration_secs_listener(listen)
  return threads


class Learner:
  """A learner that is ready once the node has nothing to compile."""

  def __init__(self, agent):
    self.node = None
    self._variables = fakes.variables_of(agent)

  def get_variables(self, names):
    self.node._server._compiler.submit(lambda: None).result()
    return [getattr(self._variables, name) for name in names]


def first_actions(agent, compiling):
  """Returns the first actions, and the threads that compile meanwhile."""
  learner, scores = Learner(agent), None
  context = contexts.make(learner=learner)
  node = learner.node = inference_node.InferenceNode(RUN, agent, context)
  node.start()
  if agent.learns_priorities:
    scores = behavior_scores.ScoreStore(agent).exchange([])
  actor = vector_actor.VectorActor(
    agent,
    epsilons=np.zeros(GROUP),
    seed=5,
    sinks=runs.recorders(GROUP),
    policy=server_lib.RemotePolicy(inference_server_test.client_of(node), 1, 1),
    scores=scores,
  )
  environment = vector.VectorEnvironment(
    [fakes.MarkedEnvironment() for _ in range(GROUP)]
  )
  compiling.clear()
  with concurrent.futures.ThreadPoolExecutor(1) as threads:
    actions = threads.submit(actor.select_actions, environment.reset())
    while not actions.done():
      node.iterate()
  node.close()
  return actions.result(), list(compiling)


def test_the_state_of_all_environments_is_that_of_the_run(monkeypatch):
  """The server has the run's epsilons, and the statistics of its actors."""
  agent = fakes.make_agent('ngu')
  with monkeypatch.context() as on_accelerator:
    on_accelerator.setattr(jax, 'default_backend', lambda: 'gpu')
    node = inference_node.InferenceNode(RUN, agent, contexts.make())
  statistics = np.arange(5.0 * GROUP, dtype=np.float32).reshape(5, GROUP)
  node.restore_statistics(1, tuple(statistics))
  node.iterate()
  node.close()
  padding = np.zeros(GROUP)
  np.testing.assert_allclose(
    node._server._state.core.agent.epsilon,
    [*agent.epsilons(RUN.num_environments), *padding],
  )
  (rewards,) = node._server._rewards
  for found, expected in zip(rewards.statistics, statistics, strict=True):
    assert found.tolist() == [*padding, *expected, *padding]


@pytest.mark.parametrize('kind', ['ngu', 'bt:flight_priorities=learned'])
def test_the_first_request_does_not_compile(kind, tmp_path, compiling):
  agent = fakes.make_agent(kind, tmp_path / 'behavior')
  actions, threads = first_actions(agent, compiling)
  assert actions.shape == (GROUP,) and not threads


def test_a_behavior_with_unknown_inputs_is_compiled_at_the_first_request(
  tmp_path, compiling
):
  class Shifted(behavior_lib.Behavior):
    """Proposes what its host computes."""

    def make_core(self, num_actions):
      return behavior_core.external()

    def make_host(self, action_spec, seeds):
      host = behavior_lib.Host()
      host.inputs = lambda observation, *_: np.ones(len(observation), np.int32)
      return host

  agent = fakes.make_agent('bt', tmp_path / 'behavior')
  agent = dataclasses.replace(agent, behaviors=(Shifted(),))
  actions, threads = first_actions(agent, compiling)
  assert actions.shape == (GROUP,) and threads
