"""Actions chosen by a server are those chosen where the environments are."""

import concurrent.futures
import itertools
import threading

import courier
import jax
import numpy as np
import pytest

from bt_acme import acting, inference
from bt_acme.core.intrinsic import ngu
from bt_acme.environments import vector
from tests.agents import fakes

GROUP, GROUPS, TURNS, REFRESH = 2, 3, 60, 17
EPSILONS = np.linspace(0.5, 0.0, GROUP * GROUPS)


class Recorder:
  """Keeps what a sink is given."""

  def __init__(self):
    self.taken = []

  def add(self, transition):
    self.taken.append(jax.tree.map(np.array, transition))

  def end_episode(self, *final):
    self.taken.append(jax.tree.map(np.array, final))


class Client:
  """Calls as courier.Client does: each in a thread of its own."""

  def __init__(self, server):
    self._server = server
    self._threads = concurrent.futures.ThreadPoolExecutor(GROUPS)

  @property
  def futures(self):
    return self

  def act(self, *request):
    return self._threads.submit(self._server.act, *request)

  def restore_statistics(self, *request):
    self._server.restore_statistics(*request)


def play(agent, variables, group, policy):
  """Acts in one group's environments; policy None chooses here."""
  first = group * GROUP
  recorders = [Recorder() for _ in range(GROUP)]
  actor = acting.VectorActor(
    agent,
    epsilons=EPSILONS[first : first + GROUP],
    seed=5,
    first_environment=first,
    sinks=recorders,
    statistics=ngu.IntrinsicStatistics(
      *np.linspace([3.0, 1.0, 0.5, 20.0, 2.0], 4.0, GROUP).T
    ),
    policy=policy,
  )
  worlds = vector.VectorEnvironment(
    [fakes.MarkedEnvironment(first + i) for i in range(GROUP)]
  )
  if policy is None:
    actor.update_variables(variables[0])
  step = worlds.reset()
  for turn in range(TURNS):
    if turn == REFRESH:
      if policy is None:
        actor.update_variables(variables[1])
      else:
        yield
    step = worlds.step(actor.select_actions(step))
    actor.observe(step)
  memories = actor.intrinsic.memories if actor.intrinsic else ()
  held = [len(memory) for memory in memories]
  yield [recorder.taken for recorder in recorders], actor.statistics(), held


@pytest.mark.parametrize(
  'kind, rewards',
  [('r2d2', False), *itertools.product(('ngu', 'bt'), (False, True))],
)
def test_a_server_chooses_as_the_actors_would(kind, rewards, tmp_path):
  agent = fakes.make_agent(kind, tmp_path / 'behavior')
  variables = [fakes.variables_of(agent, seed) for seed in (0, 1)]
  server = inference.InferenceServer(
    agent, epsilons=EPSILONS, seed=5, group_size=GROUP, rewards=rewards
  )
  server.update_variables(variables[0])
  # All groups reach the turn of the refresh, then the server gets it.
  at_refresh = threading.Barrier(GROUPS + 1)

  def remote(group):
    policy = inference.RemotePolicy(
      Client(server), group, agent.spec.frame_channels
    )
    for result in play(agent, variables, group, policy):
      if result is None:
        at_refresh.wait()
        at_refresh.wait()
    return result

  with concurrent.futures.ThreadPoolExecutor(GROUPS) as threads:
    results = [threads.submit(remote, group) for group in range(GROUPS)]
    sizes = set()
    refreshed = False
    while not all(result.done() for result in results):
      sizes.add(server.serve(0.05))
      if at_refresh.n_waiting == GROUPS and not refreshed:
        at_refresh.wait()
        server.update_variables(variables[1])
        at_refresh.wait()
        refreshed = True
  assert refreshed and max(sizes) > 1
  steps = 0
  for group, result in enumerate(results):
    *_, (expected, expected_statistics, held) = play(
      agent, variables, group, None
    )
    recorded, statistics, held_by_actor = result.result()
    assert held_by_actor == ([0] * len(held) if rewards else held)
    jax.tree.map(
      lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4),
      statistics,
      expected_statistics,
    )
    for mine, theirs in zip(recorded, expected, strict=True):
      steps += len(mine)
      for one, other in zip(mine, theirs, strict=True):
        jax.tree.map(
          lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5),
          one,
          other,
        )
  assert steps > GROUP * GROUPS * TURNS * 0.8


def _request():
  return inference.PolicyInput(
    observation=(),
    prev_action=np.zeros(GROUP, np.int32),
    prev_reward=np.zeros(GROUP, np.float32),
    is_first=np.zeros(GROUP, bool),
    is_last=np.zeros(GROUP, bool),
    feeds=(),
  )


def test_whoever_waits_for_a_stopped_server_hears_of_it():
  agent = fakes.make_agent('r2d2')
  server = inference.InferenceServer(
    agent, epsilons=EPSILONS, seed=5, group_size=GROUP
  )
  newest = np.zeros((GROUP, *agent.replay_shapes.frame), np.uint8)
  with concurrent.futures.ThreadPoolExecutor(1) as threads:
    waiting = threads.submit(server.act, 0, newest, _request(), None)
    with pytest.raises(concurrent.futures.TimeoutError):
      waiting.result(0.2)
    server.stop()
    with pytest.raises(RuntimeError, match='has stopped'):
      waiting.result(5)
  with pytest.raises(RuntimeError, match='has stopped'):
    server.act(0, newest, _request(), None)


def test_an_error_of_the_server_reaches_whoever_waits():
  agent = fakes.make_agent('r2d2')
  server = inference.InferenceServer(
    agent, epsilons=EPSILONS, seed=5, group_size=GROUP
  )
  server.update_variables(fakes.variables_of(agent))
  wrong = np.zeros((GROUP, 3, 3, 1), np.uint8)
  with concurrent.futures.ThreadPoolExecutor(1) as threads:
    waiting = threads.submit(server.act, 0, wrong, _request(), None)
    with pytest.raises(TypeError):
      while not server.serve(0.5):
        pass
    with pytest.raises(RuntimeError, match='has stopped'):
      waiting.result(5)


def test_who_asks_a_server_that_stops_hears_of_it():
  agent = fakes.make_agent('r2d2')
  server = inference.InferenceServer(
    agent, epsilons=EPSILONS, seed=5, group_size=GROUP
  )
  server.stop()
  courier_server = courier.Server()
  courier_server.Bind('act', server.act)
  courier_server.Start()
  policy = inference.RemotePolicy(
    courier.Client(courier_server.address), 0, agent.spec.frame_channels
  )
  inputs = _request()._replace(
    observation=np.zeros((GROUP, *agent.spec.observation_shape), np.uint8)
  )
  policy.request(inputs)
  with pytest.raises(ConnectionError, match='has stopped'):
    policy.receive()
  courier_server.Stop()


def test_groups_must_divide_the_environments():
  agent = fakes.make_agent('r2d2')
  with pytest.raises(ValueError, match='group_size=4 does not divide 6'):
    inference.InferenceServer(agent, epsilons=EPSILONS, seed=5, group_size=4)


def test_parameters_come_first():
  agent = fakes.make_agent('r2d2')
  policy = inference.VectorPolicy(agent, epsilons=[0.1], seed=0)
  inputs = _request()._replace(
    observation=np.zeros((1, *agent.spec.observation_shape), np.uint8)
  )
  with pytest.raises(RuntimeError, match='update_variables must come before'):
    policy.request(inputs)
