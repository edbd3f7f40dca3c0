"""Behavior Transfer around an agent."""

import dataclasses
from typing import Sequence

from bt_acme import agent as agent_lib
from bt_acme import config as config_lib
from bt_acme.agents import builder
from bt_acme.agents import r2d2
from bt_acme.behaviors import base as behaviors_lib


class BTBuilder(builder.AgentBuilder):
  """Puts behavior transfer around another builder (Campos et al. 2021,
  arXiv:2102.13515).
  """

  def __init__(
    self,
    base_builder: r2d2.R2D2Builder,
    behaviors: Sequence[behaviors_lib.Behavior],
    config: config_lib.TransferConfig = config_lib.TransferConfig(),
    *,
    behavior_weights: Sequence[float] = (),
  ):
    """Checks that the behaviors fit the environment.

    Args:
      base_builder: of the agent that learns.
      behaviors: that it brings along; each has an extra action of its own.
      config: of flights and extra actions.
      behavior_weights: with which a flight draws one; uniform if empty.
    """
    base = base_builder.agent
    groups = {
      field.name: getattr(base.config, field.name)
      for field in dataclasses.fields(config_lib.R2D2Config)
    }
    super().__init__(
      agent_lib.Agent(
        config_lib.BTConfig(**groups, transfer=config),
        base.spec,
        tuple(behaviors),
        tuple(behavior_weights),
      )
    )
