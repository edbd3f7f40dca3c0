"""Tests that a server selects the same actions as local policies."""

import concurrent.futures
import contextlib
import functools
import threading
import types

import courier
import numpy as np
import pytest

from bt_acme.acting import behavior_scores
from bt_acme.acting import inference_server as server_lib
from bt_acme.core.intrinsic import reward_statistics as reward_lib
from tests.acting import runs
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')

GROUP, GROUPS = 2, 3
EPSILONS = np.linspace(0.5, 0.0, GROUP * GROUPS)
STATISTICS = np.linspace([3.0, 1.0, 0.5, 20.0, 2.0], 4.0, GROUP * GROUPS).T


def client_of(server):
  """Returns what calls a server like courier.Client, in separate threads."""
  threads = concurrent.futures.ThreadPoolExecutor(GROUPS)
  act = functools.partial(threads.submit, server.act)
  return types.SimpleNamespace(
    futures=types.SimpleNamespace(act=act),
    restore_statistics=server.restore_statistics,
  )


def play(agent, variables, where, policy=None):
  """Acts in some environments, with a local policy by default."""
  recorders = runs.recorders(len(where))
  actor, rows = runs.play(
    agent,
    where,
    variables,
    epsilons=EPSILONS,
    learns=False,
    sinks=recorders,
    statistics=reward_lib.IntrinsicStatistics(*(x[where] for x in STATISTICS)),
    policy=policy,
    scores=(
      # The priorities stay the same for the whole test.
      behavior_scores.ScoreStore(agent).exchange(runs.SCORED)
      if agent.learns_priorities
      else None
    ),
  )
  memories = actor.intrinsic.memories if actor.intrinsic else ()
  held = [len(memory) for memory in memories]
  recorded = [(recorder.transitions, recorder.ends) for recorder in recorders]
  statistics = actor.statistics() or [
    x for host in actor._hosts for x in statistics_of(host.state())
  ]
  return recorded, statistics, held, rows


def statistics_of(host):
  """Returns the statistics of a behavior's reward, if it has one."""
  return host['reward']['statistics'] if 'reward' in (host or ()) else []


def compile_for_most_groups(steps, *args):
  """Compiles for the largest number of groups alone; pads all calls to it."""
  compiled = steps._compiler.submit(
    server_lib._compile, steps._step, server_lib._shapes(args)
  )
  steps._compiled[steps.max_size] = compiled


@pytest.mark.parametrize(
  'kind, rewards, every_size',
  [
    ('ngu', False, False),
    ('ngu:reward_observation=next', True, True),
    ('bt:flight_law=triggered,flight_epsilon=0.5', False, False),
    # All behaviors skip the episodes of others.
    (
      'bt:flight_law=jump_start,flight_priorities=learned,extra_action=False',
      *(True, False),
    ),
  ],
)
def test_a_server_selects_the_same_actions_as_the_actors(
  agents, kind, rewards, every_size, monkeypatch
):
  if not every_size:
    monkeypatch.setattr(
      server_lib._CompiledSteps, 'compile', compile_for_most_groups
    )
  agent, variables = agents(kind)
  server = server_lib.InferenceServer(
    agent, epsilons=EPSILONS, seed=5, group_size=GROUP, rewards=rewards
  )
  server.update_variables(variables[0])
  # All groups wait at the start and before the refresh, while the server does
  # the following.
  between = iter(
    [
      # Restore statistics without any requests.
      lambda: server.serve(0),
      lambda: server.update_variables(variables[1]),
    ]
  )
  pause = threading.Barrier(GROUPS + 1)

  class Policy(server_lib.RemotePolicy):
    def update_variables(self, variables):
      pause.wait()
      pause.wait()

  def remote(group):
    policy = Policy(client_of(server), group, agent.spec.frame_channels)
    where = np.arange(group * GROUP, (group + 1) * GROUP)
    return play(agent, variables, where, policy)

  with concurrent.futures.ThreadPoolExecutor(GROUPS) as threads:
    results = [threads.submit(remote, group) for group in range(GROUPS)]
    sizes = set()
    while not all(result.done() for result in results):
      if pause.n_waiting == GROUPS:
        pause.wait()
        next(between)()
        pause.wait()
      sizes.add(server.serve(0.05))
  server.stop()
  assert next(between, None) is None and max(sizes) > 1
  expected, expected_statistics, expected_held, expected_rows = play(
    agent, variables, np.arange(GROUP * GROUPS)
  )
  steps = 0
  for group, result in enumerate(results):
    recorded, statistics, held, rows = result.result()
    part = slice(group * GROUP, (group + 1) * GROUP)
    assert held == ([0] * len(held) if rewards else expected_held[part])
    assert statistics
    for mine, theirs in zip(statistics, expected_statistics, strict=True):
      np.testing.assert_allclose(mine, theirs[part], rtol=1e-4)
    for mine, theirs in zip(recorded, expected[part], strict=True):
      for one, other in zip(mine, theirs, strict=True):
        steps += len(one)
        runs.assert_steps_close(one, other, rtol=1e-4, atol=1e-5)
    runs.assert_steps_close(
      rows,
      [row for row in expected_rows if row['environment'] // GROUP == group],
      rtol=1e-3,
      atol=1e-4,
    )
  assert steps > GROUP * GROUPS * runs.TURNS * 0.8


def _request(frame=(fakes.SIDE, fakes.SIDE, 1)):
  return runs.policy_input(GROUP, np.zeros((GROUP, *frame), np.uint8))


@contextlib.contextmanager
def _pending(server, request):
  """Makes a request that the server does not answer for a while."""
  with concurrent.futures.ThreadPoolExecutor(1) as threads:
    waiting = threads.submit(server.act, 0, request, None)
    with pytest.raises(concurrent.futures.TimeoutError):
      waiting.result(0.2)
    yield waiting


@pytest.fixture(name='served')
def serve_r2d2():
  """Returns an agent and its server, and stops the server."""
  agent = fakes.make_agent('r2d2')
  server = server_lib.InferenceServer(
    agent, epsilons=EPSILONS, seed=5, group_size=GROUP
  )
  server.update_variables(fakes.variables_of(agent))
  yield agent, server
  server.stop()


def test_calls_are_padded_only_until_smaller_sizes_are_compiled():
  lowered, compiling = [], threading.Event()

  class Step:
    """A jitted function that records the sizes for which it is compiled."""

    def lower(self, params, groups, inputs, *_):
      assert inputs.shape[0] == GROUP * groups.shape[0]
      lowered.append((params.shape, groups.shape[0], groups.dtype))
      if len(lowered) > 1:
        compiling.wait(5)
      return self

    def compile(self):
      return lambda params, groups, *_: len(groups)

  compiler = concurrent.futures.ThreadPoolExecutor(1)
  steps = server_lib._CompiledSteps(Step(), 3, compiler)

  def call(size):
    groups = np.zeros(size, np.int32)
    return steps(np.zeros(5), groups, np.zeros(GROUP * size), (), ())

  assert [steps.size(n) for n in (1, 2, 3)] == [4, 4, 4]
  assert call(4) == 4
  assert [steps.size(n) for n in (1, 2, 3)] == [4, 4, 4]
  compiling.set()
  while steps.size(1) > 1:
    pass
  assert [steps.size(n) for n in (1, 2, 3, 4)] == [1, 2, 4, 4]
  assert [call(n) for n in (1, 2)] == [1, 2]
  assert lowered == [((5,), n, np.int32) for n in (4, 2, 1)]
  compiler.shutdown()


def test_a_newer_request_of_a_group_replaces_the_older_one(served):
  """The group's actor has failed and restarted while the server was busy."""
  agent, server = served
  stack = np.zeros((GROUP, *agent.spec.observation_shape), np.uint8)
  first = _request()._replace(is_first=np.ones(GROUP, bool))
  with concurrent.futures.ThreadPoolExecutor(1) as threads:
    with _pending(server, _request()) as dead:
      alive = threads.submit(server.act, 0, first, stack)
      with pytest.raises(RuntimeError, match='newer request'):
        dead.result(5)
    assert server.serve(5) == 1
    action, _ = alive.result(5)
  assert action.shape == (GROUP,)


@pytest.mark.parametrize('fails', [False, True])
def test_a_server_that_stops_or_fails_fails_pending_requests(served, fails):
  _, server = served
  with _pending(server, _request(frame=(3, 3, 1))) as waiting:
    if fails:
      with pytest.raises(TypeError):
        server.serve(5)
    else:
      server.stop()
    with pytest.raises(RuntimeError, match='has stopped'):
      waiting.result(5)


def test_requests_to_a_stopped_server_fail(served):
  agent, server = served
  server.stop()
  courier_server = courier.Server()
  courier_server.Bind('act', server.act)
  courier_server.Start()
  policy = server_lib.RemotePolicy(
    courier.Client(courier_server.address), 0, agent.spec.frame_channels
  )
  policy.request(_request(agent.spec.observation_shape))
  with pytest.raises(ConnectionError, match='has stopped'):
    policy.receive()
  courier_server.Stop()
