"""Our side: what an actor process of a run does, without Launchpad.

This is the only module of the benchmarks that knows how such a process is put
together.
"""

import tempfile
from typing import Callable, List, Optional, Sequence

import jax
import numpy as np
import reverb

from bt_acme import (
  agents,
  assembly,
  behaviors,
  environments,
  learner_assembly,
)
from bt_acme import config as config_lib
from bt_acme.acting import variables as variables_lib
from bt_acme.acting import vector_actor
from bt_acme.agents import builders as builders_lib
from bt_acme.core import epsilon, types
from bt_acme.core.intrinsic import reward as reward_lib

NUM_GAMES = 16  # In one actor process.


def make_agent(
  game: str, config: Optional[config_lib.R2D2Config] = None
) -> assembly.Agent:
  """R2D2 or NGU, as the configuration says; without one, the paper's R2D2."""
  environment = environments.make(game, seed=0)
  spec = agents.spec_of(environment, game)
  environment.close()
  return assembly.Agent(config or config_lib.R2D2Config(), spec)


def fresh_variables(agent: assembly.Agent) -> assembly.Variables:
  """Parameters as a learner publishes them before its first step."""
  state = learner_assembly.make_learner_core(agent).init(jax.random.key(0))
  return assembly.Variables(
    *jax.tree.map(np.array, (state.params, state.intrinsic_params))
  )


def make_bt_agent(game: str) -> assembly.Agent:
  """BT whose behavior is what NGU would export, with fresh parameters."""
  explorer = make_agent(game, config_lib.NGUConfig())
  with tempfile.TemporaryDirectory() as folder:
    behaviors.export(
      f'{folder}/behavior',
      agent=explorer,
      variables=fresh_variables(explorer),
      # Without statistics it would not compute its intrinsic reward.
      statistics=reward_lib.IntrinsicStatistics(1.0, 1.0, 1.0, 1.0, 1.0),
      actor_steps=0,
    )
    behavior = behaviors.Exported(f'{folder}/behavior')
  return assembly.Agent(config_lib.BTConfig(), explorer.spec, (behavior,), ())


def start_replay(agent: assembly.Agent) -> reverb.Server:
  """A replay server in this process."""
  return reverb.Server(
    builders_lib.AgentBuilder(agent).make_replay_tables(None)
  )


class FrozenLearner:
  """A learner that never learns, and counts what is fetched from it.

  Attributes:
    fetched_bytes: of all variables together.
  """

  def __init__(self, variables: Callable[[Sequence[str]], List[types.Params]]):
    """Takes what `get_variables` returns."""
    self._variables = variables
    self.fetched_bytes = 0

  def get_variables(self, names: Sequence[str]) -> List[types.Params]:
    """As `Learner.get_variables`."""
    values = self._variables(names)
    self.fetched_bytes += sum(x.nbytes for x in jax.tree.leaves(values))
    return values


def random_turns(game: str) -> Callable[[], int]:
  """Turns of an actor's games alone, under random actions."""
  environment = environments.make_vector(game, NUM_GAMES, seed=0)
  num_actions = make_agent(game).spec.num_actions
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
  """One actor process: N games, one jitted call a turn, into a replay.

  Attributes:
    learner: where its parameters come from.
  """

  def __init__(
    self, agent: assembly.Agent, *, num: int = NUM_GAMES, records: bool = True
  ):
    """Compiles, and requests the first actions.

    Args:
      agent: R2D2, NGU or BT.
      num: number of games.
      records: whether it writes into a replay server, which it starts.
    """
    acting_config = agent.config.acting
    sinks = None
    if records:
      self._server = start_replay(agent)
      builder = builders_lib.AgentBuilder(agent)
      client = reverb.Client(f'localhost:{self._server.port}')
      sinks = [builder.make_sink(client)[0] for _ in range(num)]
    self._actor = vector_actor.VectorActor(
      agent,
      epsilons=epsilon.ladder(
        num, base=acting_config.epsilon_base, alpha=acting_config.epsilon_alpha
      ),
      seed=0,
      sinks=sinks,
    )
    variables = fresh_variables(agent)
    self.learner = FrozenLearner(
      lambda names: [getattr(variables, name) for name in names]
    )
    variable_client = variables_lib.VariableClient(
      self.learner, self._actor, acting_config.variable_update_period
    )
    self.update_variables = variable_client.update
    self._environment = environments.make_vector(agent.spec.name, num, seed=0)
    self._step = self._environment.reset()
    self._actor.request_actions(self._step)

  def turn(self) -> int:
    """Acts once in each game; returns agent steps."""
    self._environment.send(self._actor.receive_actions())
    self._actor.update()
    steps = int(len(self._step.is_last) - self._step.is_last.sum())
    self._step = self._environment.recv()
    self._actor.observe(self._step)
    self._actor.request_actions(self._step)
    self.update_variables()
    return steps

  def select_actions(self) -> np.ndarray:
    """The policy alone, on what the games show."""
    return self._actor.select_actions(self._step)

  def fill_memories(self, size: int) -> None:
    """Fills each game's episodic memory up to `size` embeddings."""
    rng = np.random.default_rng(0)
    intrinsic = self._actor.intrinsic
    for memory in intrinsic.memories if intrinsic else ():
      missing = max(0, size - len(memory))
      for row in rng.normal(size=(missing, 32)).astype(np.float32):
        memory.insert(row)
