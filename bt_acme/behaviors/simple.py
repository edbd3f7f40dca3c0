"""Behaviors without parameters, for exploration without pre-training."""

from bt_acme.acting import behavior
from bt_acme.core.behavior_transfer import behavior_core


class Uniform(behavior.Behavior):
  """A behavior that takes a new random action at every step.

  Example:
    ```python
    # Takes about two minutes on two cores.
    bt_acme.transfer(
      'MiniGrid-FourRooms-v0:fixed',
      bt_acme.behaviors.Uniform(),
      max_actor_steps=40_000,
    )
    ```
  """

  name = 'uniform'

  def make_core(self, num_actions: int) -> behavior_core.BehaviorCore:
    """Returns a core that draws actions uniformly."""
    return behavior_core.uniform(num_actions)


class ActionRepeat(behavior.Behavior):
  """A behavior that repeats one random action during a flight.

  Flights of this behavior without extra actions are ez-greedy exploration.
  Campos et al. 2021 do not say when the flights of their ez-greedy baseline
  start. Here they start as in behavior transfer, in addition to each
  environment's own epsilon, so only the behavior in a flight differs.

  Example:
    ```python
    # Takes about two minutes on two cores.
    bt_acme.transfer(
      'MiniGrid-FourRooms-v0:fixed',
      bt_acme.behaviors.ActionRepeat(),
      max_actor_steps=40_000,
    )
    ```
  """

  name = 'action_repeat'

  def make_core(self, num_actions: int) -> behavior_core.BehaviorCore:
    """Returns a core that repeats one action until the flight ends."""
    return behavior_core.action_repeat(num_actions)
