"""Reward-free pre-training: R2D2 with Retrace on an intrinsic reward."""

from bt_acme import agent as agent_lib
from bt_acme import config as config_lib
from bt_acme.agents import builder


class NGUBuilder(builder.AgentBuilder):
  """Builds NGU's explorer (Badia et al. 2020, arXiv:2002.06038).

  The task's reward reaches neither the learner nor the network.
  """

  def __init__(
    self, config: config_lib.NGUConfig, spec: agent_lib.EnvironmentSpec
  ):
    """Checks that the configuration fits the environment.

    Args:
      config: of the agent; `intrinsic_reward` chooses NGU, RND or a constant.
      spec: of the environment, from `bt_acme.agents.spec_of`.
    """
    super().__init__(agent_lib.Agent(config, spec))
