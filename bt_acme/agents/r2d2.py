"""R2D2 that learns a task with Peng's Q(lambda)."""

from bt_acme import agent as agent_lib
from bt_acme import config as config_lib
from bt_acme.agents import builder


class R2D2Builder(builder.AgentBuilder):
  """Builds R2D2 (Kapturowski et al. 2019)."""

  def __init__(
    self, config: config_lib.R2D2Config, spec: agent_lib.EnvironmentSpec
  ):
    """Checks that the configuration fits the environment.

    Args:
      config: of the agent.
      spec: of the environment, from `bt_acme.agents.spec_of`.
    """
    super().__init__(agent_lib.Agent(config, spec))
