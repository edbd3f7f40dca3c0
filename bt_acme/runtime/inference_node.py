"""The inference node, which selects the actions of all actors."""

from typing import Any

import jax

from bt_acme import assembly
from bt_acme.acting import inference_server as server_lib
from bt_acme.config import run as run_config
from bt_acme.runtime import node

_SERVE_SECONDS = 0.5  # Between two checks whether to stop.


class InferenceNode(node.Node):
  """Node that selects actions on the accelerator until it is told to stop.

  Actors call `act` and `restore_statistics`, from any thread. `act` waits until
  the server has its first parameters.
  """

  def __init__(
    self,
    run: run_config.RunConfig,
    agent: assembly.Agent,
    context: node.Context,
  ):
    """Initializes a server that has not started.

    Args:
      run: the run.
      agent: the agent that acts.
      context: the context, with a client of the learner.
    """
    super().__init__(run, context)
    # One vector step of the run is one answer to each group.
    self._period = agent.config.acting.variable_update_period * run.num_groups
    self._answered = 0  # Requests since the last parameters were fetched.
    self._server = server_lib.InferenceServer(
      agent,
      epsilons=agent.epsilons(run.num_environments),
      seed=self._seed,
      group_size=run.group_size,
      # On a CPU, computing rewards would delay the emulators.
      rewards=jax.default_backend() != 'cpu',
    )

  def act(self, *request: Any) -> Any:
    """Selects actions; see `InferenceServer.act`."""
    return self._server.act(*request)

  def restore_statistics(self, *request: Any) -> None:
    """Restores statistics; see `InferenceServer.restore_statistics`."""
    self._server.restore_statistics(*request)

  def start(self) -> None:
    """Compiles, and fetches the learner's first parameters."""
    self._server.warm_up()  # While the learner and the actors start.
    self._server.update_variables(assembly.Variables.fetch(self._learner))

  def iterate(self) -> float:
    """Answers requests, and fetches new parameters periodically."""
    self._answered += self._server.serve(_SERVE_SECONDS)
    self.is_warm = self.is_warm or self._answered > 0
    if self._answered >= self._period:
      self._server.update_variables(assembly.Variables.fetch(self._learner))
      self._answered = 0
    return node.AT_ONCE

  def close(self) -> None:
    """Unblocks actors that wait for an answer."""
    self._server.stop()
