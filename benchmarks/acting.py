"""Environments, policies and actor loops."""

import functools
import multiprocessing
import os
from typing import Any, List

import reverb

from benchmarks import acme_environment, acme_side, floors, harness, our_side
from bt_acme import config as config_lib

_GAME = 'breakout'
_TASK_GAME, _TASK = 'hero', 'hero:miners_easy'


def env(settings: harness.Settings) -> List[harness.Row]:
  """Our 16 games against dm-acme's `AtariWrapper`, under random actions."""
  rows = []
  for game in ('breakout', 'montezuma_revenge'):
    ours, theirs = our_side.RandomLoop(game), acme_environment.RandomLoop(game)
    rows.append(
      harness.compare(
        f'env {game}',
        'steps/s',
        functools.partial(ours.run, settings.seconds / 2),
        functools.partial(theirs.run, settings.seconds / 2),
        rounds=settings.rounds,
        limit=1 / floors.emulation_seconds(game),
      )
    )
  # A task attributes its rewards frame by frame, so that it steps one game at
  # a time.
  task, plain = our_side.RandomLoop(_TASK), our_side.RandomLoop(_TASK_GAME)
  rows.append(
    harness.compare(
      f'env {_TASK}',
      'steps/s',
      functools.partial(task.run, settings.seconds / 2),
      functools.partial(plain.run, settings.seconds / 2),
      rounds=settings.rounds,
      limit=1 / floors.emulation_seconds(_TASK_GAME),
      peer=f'our {_TASK_GAME}',
    )
  )
  return rows


def policy(settings: harness.Settings) -> List[harness.Row]:
  """Choosing an action for each game; dm-acme's actor knows only B = 1."""
  agent = our_side.make_agent(_GAME)
  theirs = acme_side.ActorLoop(_GAME).select_action_on()
  limit = 1e6 * floors.POLICY_FLOP / floors.flops()
  rows = []
  for num in (1, 8, 32):
    loop = our_side.ActorLoop(agent, num=num)
    loop.run(settings.seconds / 10)  # Episodes start with other costs.
    ours = loop.select_actions

    def our_round(ours: Any = ours, num: int = num) -> float:
      return 1e6 * harness.seconds_per_call(ours, settings.seconds / 3) / num

    rows.append(
      harness.compare(
        f'policy B={num}',
        'us/game',
        our_round,
        lambda: 1e6 * harness.seconds_per_call(theirs, settings.seconds / 3),
        rounds=settings.rounds,
        lower_is_better=True,
        limit=limit,
      )
    )
  return rows


def _client(server: reverb.Server) -> reverb.Client:
  return reverb.Client(f'localhost:{server.port}')


def actor(settings: harness.Settings) -> List[harness.Row]:
  """From the emulator to the replay server, all on one core."""
  agent = our_side.make_agent(_GAME)
  server = our_side.start_replay(agent)
  ours = our_side.ActorLoop(agent, client=_client(server))
  config = acme_side.make_config()
  acme_server, builder = acme_side.start_replay(_GAME, config)
  theirs = acme_side.ActorLoop(
    _GAME, adder=builder.make_adder(_client(acme_server)), config=config
  )
  step = floors.emulation_seconds(_GAME) + floors.POLICY_FLOP / floors.flops()
  return [
    harness.compare(
      'actor',
      'steps/s',
      functools.partial(ours.run, settings.seconds),
      functools.partial(theirs.run, settings.seconds),
      rounds=settings.rounds,
      limit=1 / step,
    )
  ]


def actor_ngu(settings: harness.Settings) -> List[harness.Row]:
  """The same with NGU's networks, memories and reward."""
  agent = our_side.make_agent(_GAME, config_lib.NGUConfig())
  server = our_side.start_replay(agent)
  config = acme_side.make_config()
  acme_server, builder = acme_side.start_replay(_GAME, config)
  emulation = floors.emulation_seconds(_GAME)
  flops, copied = floors.flops(), floors.copy_bytes_per_second()
  ours = our_side.ActorLoop(agent, client=_client(server))
  rows = []
  for size in settings.pick((10_000, 30_000), (200,)):
    theirs = acme_side.ActorLoop(
      _GAME,
      adder=builder.make_adder(_client(acme_server)),
      config=config,
      intrinsic=agent,
      num_memories=size,
    )

    def our_round(size: int = size) -> float:
      ours.fill_memories(size)
      return ours.run(settings.seconds)

    query = size * 32 * 4 / copied
    rows.append(
      harness.compare(
        f'actor-ngu M={size:,}',
        'steps/s',
        our_round,
        functools.partial(theirs.run, settings.seconds),
        rounds=settings.rounds,
        limit=1 / (emulation + floors.NGU_FLOP / flops + query),
        peer="dm-acme's loop + NumPy",
      )
    )
  return rows


def bt(settings: harness.Settings) -> List[harness.Row]:
  """What it costs the actor loop to bring a behavior along."""
  agents = our_side.make_bt_agent(_GAME), our_side.make_agent(_GAME)
  servers = [our_side.start_replay(agent) for agent in agents]
  with_behavior, plain = (
    our_side.ActorLoop(agent, client=_client(server))
    for agent, server in zip(agents, servers, strict=True)
  )
  flop = floors.POLICY_FLOP + floors.NGU_FLOP
  step = floors.emulation_seconds(_GAME) + flop / floors.flops()
  return [
    harness.compare(
      'bt',
      'steps/s',
      functools.partial(with_behavior.run, settings.seconds),
      functools.partial(plain.run, settings.seconds),
      rounds=settings.rounds,
      limit=1 / step,
      peer='our R2D2',
    )
  ]


def _serve_rounds(core: int, pipe: Any) -> None:
  """An actor process on its own core: is sent seconds, sends steps a second."""
  os.sched_setaffinity(0, {core})
  agent = our_side.make_agent(_GAME)
  server = our_side.start_replay(agent)
  loop = our_side.ActorLoop(agent, client=_client(server))
  while (seconds := pipe.recv()) is not None:
    pipe.send(loop.run(seconds))


def actor_scale(settings: harness.Settings) -> List[harness.Row]:
  """One actor process on one core, against one on each of two."""
  context = multiprocessing.get_context('spawn')
  pipes, processes = [], []
  for core in sorted(os.sched_getaffinity(0))[:2]:
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve_rounds, args=(core, theirs))
    process.start()
    theirs.close()
    pipes.append(ours)
    processes.append(process)

  def run(pipes: List[Any]) -> float:
    for pipe in pipes:
      pipe.send(settings.seconds)
    return float(sum(pipe.recv() for pipe in pipes))

  run(pipes)  # The first round compiles.
  try:
    return [
      harness.compare(
        'actor-scale',
        'steps/s',
        lambda: run(pipes),
        lambda: run(pipes[:1]),
        rounds=settings.rounds,
        limit=len(pipes) * run(pipes[:1]),
        peer='one process',
      )
    ]
  finally:
    for pipe, process in zip(pipes, processes, strict=True):
      pipe.send(None)
      process.join()
