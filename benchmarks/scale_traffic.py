"""Measures the servers of a large run with the traffic of 4,096 environments.

256 actor nodes, whose environments do nothing, report to a coordinator, and
4,096 writers replay recorded blocks to a replay server. Both servers are
processes of their own. Costs are processor time, so other load hardly matters.
"""

import itertools
import tempfile
import time
from concurrent import futures
from typing import Any

import courier
import jax
import reverb

from benchmarks import core_parts, processes, replay_sides
from bt_acme import assembly, memory_check
from bt_acme import config as config_lib
from bt_acme.acting import actor_groups
from bt_acme.config import run as run_config
from bt_acme.replay import sequences, writer
from bt_acme.runtime import actor_node, coordinator, node

_GAME = 'montezuma_revenge'
_ACTORS, _ENVIRONMENTS, _TURNS = 256, 16, 640
_EPISODE_TURNS = 62  # Vector steps between two finished episodes of an actor.


class _Play(actor_groups.Pipeline):
  """Environments that do nothing."""

  _turns = 0

  def step(self) -> tuple[int, list[dict[str, float]]]:
    self._turns += 1
    ends = self._turns % _EPISODE_TURNS == 0
    return _ENVIRONMENTS, [{'episode_return': 0.0}] * ends


def _context(**settings: Any) -> node.Context:
  return node.Context(lambda s: False, lambda handler: None, **settings)


def _run(**settings: Any) -> run_config.RunConfig:
  return run_config.RunConfig(
    env=_GAME, num_actors=_ACTORS, envs_per_actor=_ENVIRONMENTS, **settings
  )


def _serve(run: run_config.RunConfig) -> courier.Server:
  """Serves a coordinator from this process."""
  served = coordinator.Coordinator(run, lambda steps: None, _context())
  served.resume({'actor_steps': 0, 'learner_steps': 0})
  server = courier.Server()
  for name in ('lease', 'report_acting', 'get_counts'):
    server.Bind(name, getattr(served, name))
  server.Start()
  return server


def _coordinator(agent: assembly.Agent) -> dict[str, float]:
  """Measures a coordinator with 256 actors that act as fast as they can."""
  steps = _ACTORS * _ENVIRONMENTS * _TURNS
  with tempfile.TemporaryDirectory() as folder:
    run = _run(workdir=folder, max_actor_steps=steps)
    server = processes.OtherProcess(lambda: _serve(run))
    address, before = server.address, server.processor_seconds()
    actors = []
    for i in range(_ACTORS):
      context = _context(coordinator=courier.Client(address))
      actor = actor_node.ActorNode(run, agent, i, writer.ReverbWriter, context)
      actor._pipeline = _Play([])
      actors.append(actor)
    start = time.monotonic()
    with futures.ThreadPoolExecutor(_ACTORS) as pool:
      list(pool.map(lambda actor: list(iter(actor.iterate, None)), actors))
    seconds = time.monotonic() - start
    used = server.processor_seconds() - before
    counted = courier.Client(address).get_counts()['actor_steps']
    server.shutdown()
  assert counted >= steps, counted
  return {
    'coordinate_s': used / counted,
    'coordinator_steps_per_s': counted / seconds,
  }


def _recorded(agent: assembly.Agent) -> list[Any]:
  """Returns the blocks of a recording, with priorities."""
  collected: list[Any] = []
  sink = sequences.SequenceSink(
    agent.config,
    agent.replay_layout,
    lambda *block: collected.append(block),
    num_actions=agent.spec.num_actions,
  )
  play = core_parts.record(_GAME, 4_000)
  for call in replay_sides.calls_of(sink, play):
    call()
  return collected


def _replay(sequences: int) -> dict[str, float]:
  """Measures a replay server: 4,096 writers, and then a sampler."""
  agent = core_parts.make_agent(
    _GAME,
    'ngu',
    # These let `sequences` inserts pass, and then a tenth as many samples.
    min_replay_size=sequences,
    samples_per_insert=1.0,
  )
  config = agent.config
  server = replay_sides.OurReplay(agent)
  address = server.address
  writers = [
    writer.ReverbWriter(client, agent.replay_layout)
    for client in (reverb.Client(address) for _ in range(_ACTORS))
    for _ in range(_ENVIRONMENTS)
  ]
  steps, num_bytes, items = 0, 0, 0
  used, memory = server.processor_seconds(), server.resident_bytes()
  start = time.monotonic()
  recorded = itertools.cycle(_recorded(agent))
  traffic = ((one, *each) for each in recorded for one in writers)
  while items < sequences:
    one, block, priority = next(traffic)
    one.write(block, priority)
    steps += len(block.steps['action'])
    num_bytes += len(block.payload) + block.recurrent_state.nbytes
    items += bool(block.sequence)
  for one in writers:
    one.flush()
  seconds = time.monotonic() - start
  costs = {
    'insert_s': (server.processor_seconds() - used) / steps,
    'step_bytes': num_bytes / steps,
    'stored_bytes': (server.resident_bytes() - memory) / steps,
    'replay_steps_per_s': steps / seconds,
    'replay_bytes_per_s': num_bytes / seconds,
    'writers': len(writers),
  }
  dataset = server.dataset()
  batches = max(1, sequences // 10 // config.learner.batch_size // 2)
  used, own = server.processor_seconds(), time.process_time()
  for _ in range(batches):
    dataset.release(next(dataset))
  costs['sample_s'] = (server.processor_seconds() - used) / batches
  costs['decode_s'] = (time.process_time() - own) / batches
  dataset.stop()
  for one in writers:
    one.close()
  server.shutdown()
  return costs


def measure(sequences: int) -> dict[str, float]:
  """Measures both servers, and estimates the memory of the run.

  Args:
    sequences: the number of sequences to write.

  Returns:
    The costs that `benchmarks.scale` reads.
  """
  jax.config.update('jax_platforms', 'cpu')
  agent = core_parts.make_agent(_GAME, 'ngu')
  needs = memory_check.estimate(_run(), agent)
  reward = config_lib.NGUConfig().intrinsic
  rows = _ACTORS * _ENVIRONMENTS * reward.memory_capacity
  return {
    **_coordinator(agent),
    **_replay(sequences),
    'memory_bytes': sum(need.num_bytes for need in needs),
    # Embeddings and their norms, which `needs` contains.
    'episodic_bytes': rows * (reward.embedding_size + 1) * 4,
    'samples_per_insert': agent.config.replay.samples_per_insert,
  }
