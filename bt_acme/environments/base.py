"""The base of all environments here: float32 rewards and discounts."""

from typing import SupportsFloat

import dm_env
import numpy as np
from dm_env import specs


class Environment(dm_env.Environment):
  """An environment whose rewards and discounts are float32."""

  def reward_spec(self) -> specs.Array:
    return specs.Array((), np.float32, name='reward')

  def discount_spec(self) -> specs.BoundedArray:
    return specs.BoundedArray(
      (), np.float32, minimum=0.0, maximum=1.0, name='discount'
    )


def time_step(
  observation: np.ndarray,
  reward: SupportsFloat,
  *,
  terminated: bool,
  truncated: bool,
) -> dm_env.TimeStep:
  """Makes a step after the first of an episode.

  Args:
    observation: what the step leads to.
    reward: the step's reward.
    terminated: whether the episode is over; the discount is then 0.
    truncated: whether the episode is cut off. The discount stays 1, so that
      the last observation is bootstrapped from.
  """
  is_last = terminated or truncated
  return dm_env.TimeStep(
    step_type=dm_env.StepType.LAST if is_last else dm_env.StepType.MID,
    reward=np.float32(reward),
    discount=np.float32(not terminated),
    observation=observation,
  )
