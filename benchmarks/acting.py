"""Benchmarks of environments, policies, actor loops and parameter updates."""

import functools
import os
from collections.abc import Iterator

import haiku as hk

from benchmarks import acme_side, core_parts, harness, limits, our_side
from benchmarks.processes import OtherProcess

_GAME = 'breakout'

_steps = functools.partial(harness.timed, units=None)


def env() -> Iterator[harness.Comparison]:
  """Compares our 16 games with dm-acme's `AtariWrapper`; actions are random."""
  for name, game, peer, theirs in (
    ('breakout', 'breakout', 'dm-acme', acme_side),
    ('montezuma_revenge', 'montezuma_revenge', 'dm-acme', acme_side),
    # A task computes its rewards frame by frame and steps games one by one.
    ('hero:miners_easy', 'hero', 'our hero', our_side),
  ):
    yield harness.Comparison(
      f'env {name}',
      'steps/s',
      _steps(our_side.random_turns(name), share=0.5),
      _steps(theirs.random_turns(game), share=0.5),
      limits.emulation_seconds(game),
      peer,
    )


def policy() -> Iterator[harness.Comparison]:
  """Compares action selection; dm-acme's actor supports only B = 1."""
  agent = core_parts.make_agent(_GAME)
  theirs = acme_side.PeerActor(_GAME, records=False).select_action_on()
  limit = limits.POLICY_FLOP / limits.flops()
  for num in (1, 8, 32):
    ours = our_side.ActorProcess(agent, num=num, records=False)
    _steps(ours.turn, share=0.1)()  # Skip the start of episodes.
    yield harness.Comparison(
      f'policy B={num}',
      'us/game',
      harness.timed(ours.select_actions, units=num, share=0.3),
      harness.timed(theirs, share=0.3),
      limit,
    )


def actor() -> Iterator[harness.Comparison]:
  """Compares actors from the emulator to the replay server, on one core."""
  yield harness.Comparison(
    'actor',
    'steps/s',
    _steps(our_side.ActorProcess(core_parts.make_agent(_GAME)).turn),
    _steps(acme_side.PeerActor(_GAME).turn),
    limits.emulation_seconds(_GAME) + limits.POLICY_FLOP / limits.flops(),
  )


def actor_ngu() -> Iterator[harness.Comparison]:
  """Compares actors with NGU's networks, memories and reward."""
  agent = core_parts.make_agent(_GAME, 'ngu')
  limit = limits.emulation_seconds(_GAME) + limits.NGU_FLOP / limits.flops()
  copied = limits.copy_bytes_per_second()
  ours = our_side.ActorProcess(agent)
  for size in (200,) if harness.quick else (10_000, 30_000):
    yield harness.Comparison(
      f'actor-ngu M={size:,}',
      'steps/s',
      functools.partial(_with_memories, ours, size),
      _steps(
        acme_side.PeerActor(_GAME, intrinsic=agent, num_memories=size).turn
      ),
      limit + size * 32 * 4 / copied,
      peer="dm-acme's loop + NumPy",
    )


def _with_memories(ours: our_side.ActorProcess, size: int) -> float:
  ours.fill_memories(size)
  return _steps(ours.turn)()


def bt() -> Iterator[harness.Comparison]:
  """Measures the cost of one behavior, and of five, in the actor loop."""
  emulation, flops = limits.emulation_seconds(_GAME), limits.flops()
  one = _steps(our_side.ActorProcess(our_side.make_bt_agent(_GAME)).turn)
  r2d2 = _steps(our_side.ActorProcess(core_parts.make_agent(_GAME)).turn)
  five = _steps(our_side.ActorProcess(our_side.make_bt_agent(_GAME, 5)).turn)
  # The first behavior processes all steps, the others a fifth of them each.
  agent = our_side.make_bt_agent(
    _GAME, 5, behavior_roles='both,fly,fly,fly,fly', behavior_draws='episode'
  )
  drawn = _steps(our_side.ActorProcess(agent).turn)
  for name, num, ours, theirs, peer in (
    ('bt', 1, one, r2d2, 'our R2D2'),
    ('bt K=5', 5, five, one, 'K=1'),
    ('bt K=5, drawn', 1.8, drawn, one, 'K=1'),
  ):
    yield harness.Comparison(
      name,
      'steps/s',
      ours,
      theirs,
      emulation + (limits.POLICY_FLOP + num * limits.NGU_FLOP) / flops,
      peer=peer,
    )


def actor_scale() -> Iterator[harness.Comparison]:
  """Compares two actor processes on two cores with one on one core."""
  clock, seconds = harness.clock, harness.round_seconds

  def make(core: int) -> our_side.ActorProcess:
    os.sched_setaffinity(0, {core})
    harness.clock, harness.round_seconds = clock, seconds
    return our_side.ActorProcess(core_parts.make_agent(_GAME))

  actors = [
    OtherProcess(functools.partial(make, core))
    for core in sorted(os.sched_getaffinity(0))[:2]
  ]

  def run(actors: list[OtherProcess]) -> float:
    rates = [actor.call(lambda x: 1 / _steps(x.turn)()) for actor in actors]
    return 1 / sum(rate.result() for rate in rates)

  run(actors)  # Compiles in the first round.
  yield harness.Comparison(
    'actor-scale',
    'steps/s',
    lambda: run(actors),
    lambda: run(actors[:1]),
    run(actors[:1]) / len(actors),
    peer='one process',
  )
  for actor in actors:
    actor.shutdown()


def params() -> Iterator[harness.Comparison]:
  """Compares fetched parameters; dm-acme has one client per game."""
  agent = core_parts.make_agent(_GAME)
  ours = core_parts.fresh_variables(agent)
  our_steps = agent.config.acting.variable_update_period * our_side.NUM_GAMES
  theirs = acme_side.PeerActor(_GAME, records=False).params
  their_steps = acme_side.make_config().variable_update_period
  yield harness.Comparison(
    'params',
    'MB/1000 steps',
    lambda: hk.data_structures.tree_bytes(ours) / our_steps / 1e3,
    lambda: hk.data_structures.tree_bytes(theirs) / their_steps / 1e3,
    once=True,
  )
