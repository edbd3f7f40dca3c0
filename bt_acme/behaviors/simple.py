"""Behaviors without parameters: exploration that needs no pre-training."""

from bt_acme.acting import behavior
from bt_acme.core.behavior_transfer import behavior_core


class Uniform(behavior.Behavior):
  """A new random action at every step."""

  name = 'uniform'

  def make_core(self, num_actions: int) -> behavior_core.BehaviorCore:
    return behavior_core.uniform(num_actions)


class ActionRepeat(behavior.Behavior):
  """One random action per flight: with flights alone, ez-greedy exploration.

  Campos et al. 2021 do not say when the flights of their ez-greedy baseline
  start. Here they start as those of behavior transfer do, in addition to each
  environment's own epsilon, and the two differ only in what acts in a flight.
  """

  name = 'action_repeat'

  def make_core(self, num_actions: int) -> behavior_core.BehaviorCore:
    return behavior_core.action_repeat(num_actions)
