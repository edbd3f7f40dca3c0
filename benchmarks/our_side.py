"""bt_acme's side of the benchmarks: an actor process, without Launchpad.

No other module of the benchmarks depends on the structure of an actor process.
"""

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import reverb

from benchmarks import core_parts
from bt_acme import assembly, behaviors, environments
from bt_acme import config as config_lib
from bt_acme.acting import actor_groups, vector_actor
from bt_acme.agents import builders as builders_lib
from bt_acme.core.intrinsic import reward_statistics as reward_lib

NUM_GAMES = 16  # Games of an actor process.


def make_bt_agent(
  game: str, num_behaviors: int = 1, **settings: Any
) -> assembly.Agent:
  """Makes a BT agent whose behaviors are exported NGU agents, untrained."""
  explorer = core_parts.make_agent(game, 'ngu')
  with tempfile.TemporaryDirectory() as folder:
    behaviors.export(
      f'{folder}/behavior',
      agent=explorer,
      variables=core_parts.fresh_variables(explorer),
      # Required for computing the intrinsic reward.
      statistics=reward_lib.IntrinsicStatistics(1.0, 1.0, 1.0, 1.0, 1.0),
      actor_steps=0,
    )
    loaded = tuple(
      behaviors.Exported(f'{folder}/behavior') for _ in range(num_behaviors)
    )
  config = config_lib.BTConfig(transfer=config_lib.TransferConfig(**settings))
  return assembly.Agent(config, explorer.spec, loaded, ())


def start_replay(agent: assembly.Agent) -> reverb.Server:
  """Starts a replay server in this process."""
  return reverb.Server(
    builders_lib.AgentBuilder(agent).make_replay_tables(None)
  )


def random_turns(game: str) -> Callable[[], int]:
  """Returns a function that takes random steps and returns their number."""
  environment = environments.make_vector(game, NUM_GAMES, seed=0)
  num_actions = core_parts.ATARI.num_actions
  rng = np.random.default_rng(0)
  is_last = environment.reset().is_last

  def turn() -> int:
    nonlocal is_last
    steps = int(NUM_GAMES - is_last.sum())
    actions = rng.integers(num_actions, size=NUM_GAMES)
    is_last = environment.step(actions).is_last
    return steps

  return turn


class ActorProcess:
  """An actor process: N games, a jitted call per vector step, and a replay."""

  def __init__(
    self, agent: assembly.Agent, *, num: int = NUM_GAMES, records: bool = True
  ):
    """Initializes and compiles the actor and requests the first actions.

    Args:
      agent: an R2D2, NGU or BT agent.
      num: the number of games.
      records: whether to start a replay server and write to it.
    """
    sinks = None
    if records:
      self._server = start_replay(agent)
      builder = builders_lib.AgentBuilder(agent)
      client = reverb.Client(f'localhost:{self._server.port}')
      sinks = [builder.make_sink(client)[0] for _ in range(num)]
    actor = vector_actor.VectorActor(
      agent, epsilons=agent.epsilons(num), seed=0, sinks=sinks
    )
    self._variables = core_parts.fresh_variables(agent)
    self._update_period = agent.config.acting.variable_update_period
    self._turns = 0
    games = environments.make_vector(agent.spec.name, num, seed=0)
    self._group = actor_groups.Group(games, actor)
    self._update_variables()
    self._group.request()

  def turn(self) -> int:
    """Takes a step in each game and returns the number of agent steps."""
    steps = self._group.act()
    self._group.observe()
    self._group.request()
    self._update_variables()
    return steps

  def _update_variables(self) -> None:
    """Replaces the parameters, at the start of each update period."""
    if self._turns % self._update_period == 0:
      self._group.actor.update_variables(self._variables)
    self._turns += 1

  def select_actions(self) -> np.ndarray:
    """Runs only the policy, on the current observations."""
    assert self._group.shown is not None
    return self._group.actor.select_actions(self._group.shown)

  def fill_memories(self, size: int) -> None:
    """Fills each game's episodic memory with up to `size` embeddings."""
    rng = np.random.default_rng(0)
    intrinsic = self._group.actor.intrinsic
    for memory in intrinsic.memories if intrinsic else ():
      missing = max(0, size - len(memory))
      for row in rng.normal(size=(missing, 32)).astype(np.float32):
        memory.insert(row)
