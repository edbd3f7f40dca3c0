"""The base class of all environments of this package."""

from typing import SupportsFloat

import dm_env
import numpy as np
from dm_env import specs


class Environment(dm_env.Environment):
  """An environment whose rewards and discounts are float32."""

  def reward_spec(self) -> specs.Array:
    """Describes rewards: float32 scalars."""
    return specs.Array((), np.float32)

  def discount_spec(self) -> specs.BoundedArray:
    """Describes discounts: float32 scalars in [0, 1]."""
    return specs.BoundedArray((), np.float32, 0.0, 1.0)


def time_step(
  observation: np.ndarray,
  reward: SupportsFloat,
  *,
  terminated: bool,
  truncated: bool,
) -> dm_env.TimeStep:
  """Creates any time step of an episode except the first.

  Args:
    observation: the observation after the step.
    reward: the reward of the step.
    terminated: whether the episode ends in a terminal state; the discount is
      then 0.
    truncated: whether the episode is truncated. The discount stays 1, so the
      learner bootstraps from the last observation.
  """
  is_last = terminated or truncated
  return dm_env.TimeStep(
    step_type=dm_env.StepType.LAST if is_last else dm_env.StepType.MID,
    reward=np.float32(np.asarray(reward).item()),
    discount=np.float32(not terminated),
    observation=observation,
  )
