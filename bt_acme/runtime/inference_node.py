"""The inference server's process: it chooses the actions of all actors."""

import threading
from typing import Any

import jax

from bt_acme import assembly
from bt_acme.acting import server as server_lib
from bt_acme.acting import variables
from bt_acme.config import run as run_config
from bt_acme.core import epsilon
from bt_acme.runtime import context as context_lib
from bt_acme.runtime import seeds

_SERVE_SECONDS = 0.5  # Between two questions whether to stop.


class InferenceNode:
  """Chooses actions on the accelerator until it is told to stop.

  `act` and `restore_statistics` are called by actors, from any thread. They
  wait until the server has its first parameters.
  """

  def __init__(
    self,
    run: run_config.RunConfig,
    agent: assembly.Agent,
    context: context_lib.Context,
  ):
    """Builds nothing yet.

    Args:
      run: the run.
      agent: the agent that acts.
      context: has a client of the learner.
    """
    assert context.learner is not None
    self._run = run
    self._agent = agent
    self._context = context
    self._learner = context.learner
    self._ready = threading.Event()
    self._server: Any = None

  def act(self, *request: Any) -> Any:
    """Does what `server.InferenceServer.act` does."""
    self._ready.wait()
    return self._server.act(*request)

  def restore_statistics(self, *request: Any) -> None:
    """Does what `server.InferenceServer.restore_statistics` does."""
    self._ready.wait()
    self._server.restore_statistics(*request)

  def run(self) -> None:
    """Answers requests, and fetches new parameters every so many turns."""
    run, acting = self._run, self._agent.config.acting
    server = server_lib.InferenceServer(
      self._agent,
      epsilons=epsilon.ladder(
        run.num_environments,
        base=acting.epsilon_base,
        alpha=acting.epsilon_alpha,
      ),
      seed=seeds.of_node(run.seed, self._context.life),
      group_size=run.group_size,
      # A CPU would keep the emulators waiting.
      rewards=jax.default_backend() != 'cpu',
    )
    server.update_variables(variables.fetch(self._learner))
    self._server = server
    self._ready.set()
    # One turn of the run is one answer to each group.
    period = acting.variable_update_period * run.num_groups
    answered, has_compiled = 0, False
    try:
      while not self._context.wait_for_stop(0):
        answered += server.serve(_SERVE_SECONDS)
        has_compiled = has_compiled or answered > 0
        if has_compiled:
          self._context.alive()
        if answered >= period:
          server.update_variables(variables.fetch(self._learner))
          answered = 0
    finally:
      server.stop()
