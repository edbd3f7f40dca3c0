"""All settings of agents and runs, and named presets.

A setting is a field of a group, a group is a field of an agent's configuration,
and the launch scripts have a flag of the same name for every setting.
"""

from bt_acme.config.acting import ActingConfig
from bt_acme.config.agent import AGENTS, BTConfig, NGUConfig, R2D2Config
from bt_acme.config.intrinsic import IntrinsicConfig
from bt_acme.config.learner import LearnerConfig, NGULearnerConfig
from bt_acme.config.names import from_dict, to_dict
from bt_acme.config.network import NetworkConfig
from bt_acme.config.replay import ReplayConfig
from bt_acme.config.run import RunConfig
from bt_acme.config.transfer import TransferConfig

__all__ = (
  'AGENTS',
  'ActingConfig',
  'BTConfig',
  'IntrinsicConfig',
  'LearnerConfig',
  'NGUConfig',
  'NGULearnerConfig',
  'NetworkConfig',
  'R2D2Config',
  'ReplayConfig',
  'RunConfig',
  'TransferConfig',
  'from_dict',
  'to_dict',
)
