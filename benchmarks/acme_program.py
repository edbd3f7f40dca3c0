"""Runs dm-acme's distributed R2D2 with its own Launchpad layout."""

import functools
from typing import Any

from acme.agents.jax import r2d2
from acme.jax.layouts import distributed_layout
from acme.utils import loggers

from benchmarks import acme_side, catalog
from bt_acme.runtime import launcher, supervisor


def _logger(workdir: str) -> loggers.Logger:
  """Writes a row for each step of the learner to the path of our log.

  As in dm-acme's default, a thread waits for the loss of the step.
  """
  return loggers.AsyncLogger(
    loggers.CSVLogger(workdir, 'learner', add_uid=False, flush_every=1)
  )


class _Layout(distributed_layout.DistributedLayout):
  """Acme's layout with methods that are pickled as functions of this module.

  Unpickling a node therefore imports this package and bt_acme first.
  """

  def replay(self) -> Any:
    return super().replay()

  def counter(self) -> Any:
    return super().counter()

  def coordinator(self, *args: Any) -> Any:
    return super().coordinator(*args)

  def learner(self, *args: Any) -> Any:
    return super().learner(*args)

  def actor(self, *args: Any) -> Any:
    return super().actor(*args)


def run(workdir: str, game: str, num_actors: int, **settings: Any) -> int:
  """Runs the program until interrupted.

  Args:
    workdir: directory of the checkpoints, the log of counts and the output of
      the processes.
    game: the name of the game.
    num_actors: the number of actor processes.
    **settings: settings of R2D2's configuration.

  Returns:
    An exit code.
  """
  config = acme_side.make_config(**settings)
  spec = acme_side.make_spec(game)
  layout = _Layout(
    seed=0,
    environment_factory=lambda seed: acme_side.make_environment(
      game, seed % 2**31
    ),
    network_factory=functools.partial(
      acme_side.make_networks, config.batch_size
    ),
    builder=acme_side.make_builder(
      spec, config, functools.partial(_logger, workdir)
    ),
    policy_network=functools.partial(r2d2.make_behavior_policy, config=config),
    num_actors=num_actors,
    environment_spec=spec,
    actor_logger_fn=lambda actor_id: loggers.NoOpLogger(),
    device_prefetch=False,
    prefetch_size=config.prefetch_size,
    checkpointing_config=distributed_layout.CheckpointingConfig(
      directory=workdir, add_uid=False
    ),
  )
  return launcher.launch(
    layout.build(),
    workdir=workdir,
    environments={'actor': catalog.ONE_CORE},
    rules=supervisor.Rules(main_label='learner', grace_seconds=2.0),
  )
