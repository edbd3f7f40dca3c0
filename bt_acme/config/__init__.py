"""Every setting: what the agent is, what one run is, and named presets."""

from bt_acme.config.agent import (
  ActingConfig,
  BTConfig,
  IntrinsicConfig,
  LearnerConfig,
  NetworkConfig,
  NGUConfig,
  R2D2Config,
  ReplayConfig,
  TransferConfig,
  check_finite,
  from_dict,
  to_dict,
)

__all__ = (
  'ActingConfig',
  'BTConfig',
  'IntrinsicConfig',
  'LearnerConfig',
  'NGUConfig',
  'NetworkConfig',
  'R2D2Config',
  'ReplayConfig',
  'TransferConfig',
  'check_finite',
  'from_dict',
  'to_dict',
)
