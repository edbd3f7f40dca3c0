r"""Trains dm-acme's DQN in MiniGrid, alone or with behavior transfer.

  python launch/run_acme_dqn.py --behavior=minigrid-explorer
  python launch/run_acme_dqn.py

An example of behavior transfer around an agent that does not know of it: all
parts are dm-acme's, except for `BTBuilder`. It takes two to four minutes. No
seed reproduces it, because the replay of dm-acme draws at random.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from bt_acme.runtime import interrupts

if __name__ == '__main__':
  interrupts.end_at_once()  # Before the imports that take seconds.

from bt_acme import agents, environments  # Before acme.

# isort: split
import acme
import haiku as hk
import jax
import numpy as np
from acme.agents.jax import dqn
from acme.jax import networks as networks_lib
from acme.jax import utils
from acme.jax.layouts import local_layout
from acme.utils import loggers

from bt_acme import config as config_lib
from bt_acme.cli import flags
from bt_acme.config import checks
from bt_acme.config import run as run_config
from bt_acme.launching import named_behaviors
from bt_acme.runtime import output

_PERIOD, _RECENT = 2_000, 20  # Actor steps between lines, and their episodes.


@dataclasses.dataclass(frozen=True)
class DQNConfig:
  """Settings of the run.

  Attributes:
    env: Name of the environment of MiniGrid.
    behavior: Behaviors to transfer, separated by commas, as in run_bt.py; empty
      for DQN alone.
    max_actor_steps: Actor steps after which training ends.
    episodes: Episodes of the evaluation after training, without flights and
      with the same epsilon.
    seed: Random seed of environment, network, actions and flights.
  """

  env: str = 'MiniGrid-DoorKey-8x8-v0:fixed=21'
  behavior: str = ''
  max_actor_steps: int = checks.setting(40_000, above=0)
  episodes: int = checks.setting(64, above=0)
  seed: int = checks.setting(0, minimum=0, maximum=run_config.LARGEST_SEED)

  def __post_init__(self) -> None:
    checks.check(self)
    environments.validate(self.env)
    checks.require(
      self.env.startswith('MiniGrid-'),
      f'env={self.env!r} is not an environment of MiniGrid, for whose images '
      'the network is made.',
    )


@dataclasses.dataclass(frozen=True)
class Settings:
  """All settings of this script."""

  run: DQNConfig = DQNConfig()
  # Flights start and end as with the preset `minigrid`.
  transfer: config_lib.TransferConfig = config_lib.TransferConfig(
    min_flight_probability=0.03, flight_exponent=1.5
  )

  def __post_init__(self) -> None:
    changed = vars(self.transfer).items() - vars(type(self).transfer).items()
    for name, value in sorted(changed) if not self.run.behavior else ():
      raise ValueError(
        f'{name}={value!r} has no effect without a behavior. Pass --behavior.'
      )


def make_networks(
  spec: acme.specs.EnvironmentSpec,
) -> networks_lib.FeedForwardNetwork:
  """Makes a Q-network for MiniGrid, whose uint8 numbers are at most 10."""

  def q_values(image: jax.Array) -> jax.Array:
    x = image.astype(np.float32) / 10.0
    for channels in (16, 32):
      x = jax.nn.relu(hk.Conv2D(channels, 2, padding='VALID')(x))
    sizes = (128, 128, spec.actions.num_values)
    return hk.nets.MLP(sizes)(hk.Flatten()(x))

  network: Any = hk.without_apply_rng(hk.transform(q_values))
  image = utils.add_batch_dim(utils.zeros_like(spec.observations))
  return networks_lib.FeedForwardNetwork(
    lambda key: network.init(key, image), network.apply
  )


def run(
  settings: Settings, report: Callable[[np.ndarray], None]
) -> tuple[np.ndarray, np.ndarray]:
  """Trains DQN and evaluates its policy without flights.

  DQN has no memory, so a policy without random actions may act in circles; like
  in training, it has an epsilon of 0.05, the default of dm-acme.

  Args:
    settings: the settings.
    report: called after each training episode with the episodes so far.

  Returns:
    The length and the return of each training episode, float64 [episodes, 2],
    and of each evaluation episode.
  """
  env, seed = settings.run.env, settings.run.seed
  environment = environments.make(env, seed=seed)
  spec = acme.make_environment_spec(environment)
  # In a `LocalLayout`, acting and learning must not wait for each other.
  config = dqn.DQNConfig(
    batch_size=64,
    learning_rate=5e-4,
    min_replay_size=1,
    samples_per_insert_tolerance_rate=float('inf'),
  )
  builder = dqn.DQNBuilder(config, dqn.PrioritizedDoubleQLearning())
  networks, evaluation_policy = make_networks(spec), lambda policy: policy
  if settings.run.behavior:
    base = builder
    builder = agents.BTBuilder(
      lambda spec: base,
      named_behaviors.make(settings.run.behavior, settings.transfer),
      settings.transfer,
      environment_spec=spec,
    )
    networks = builder.make_networks(make_networks)
    spec, evaluation_policy = builder.agent_spec, builder.make_evaluation_policy
  policy = dqn.behavior_policy(networks)
  agent = local_layout.LocalLayout(
    seed,
    spec,
    builder,
    networks,
    policy,
    workdir=None,
    min_replay_size=1_000,
    batch_size=config.batch_size,
    samples_per_insert=8,
  )
  training = _loop(environment, agent)
  trained = np.empty([0, 2])
  while trained[:, 0].sum() < settings.run.max_actor_steps:
    trained = np.append(trained, [_play(training)], axis=0)
    report(trained)

  actor = builder.make_actor(
    jax.random.PRNGKey(seed), evaluation_policy(policy), variable_source=agent
  )
  evaluation = _loop(environments.make(env, seed=seed + 1), actor)
  played = [_play(evaluation) for _ in range(settings.run.episodes)]
  return trained, np.array(played, np.float64)


def _loop(environment: Any, actor: acme.Actor) -> acme.EnvironmentLoop:
  return acme.EnvironmentLoop(environment, actor, logger=loggers.NoOpLogger())


def _play(loop: acme.EnvironmentLoop) -> list[float]:
  episode = loop.run_episode()
  return [episode['episode_length'], float(episode['episode_return'])]


def main(argv):
  """Trains, shows the progress and prints the result."""
  del argv

  def report(episodes: np.ndarray) -> None:
    steps, last = int(episodes[:, 0].sum()), episodes[-1, 0]
    if steps // _PERIOD > (steps - last) // _PERIOD:
      recent = episodes[-_RECENT:, 1] > 0
      text = f'solved {recent.sum()} of the last {len(recent)} episodes'
      output.show(f'actor steps {steps:,}: {text}')

  _, played = run(flags.from_flags(Settings), report)
  solved = played[:, 1] > 0
  output.show(
    f'Without flights, DQN solves {solved.sum()} of {len(solved)} episodes.'
  )
  return 0


if __name__ == '__main__':
  flags.define(Settings)
  flags.run_main(main, Settings)
