"""Groups of environments that one actor steps alternately.

With an inference server, an actor has two groups: one group emulates while the
other waits for its actions, so neither the emulators nor the accelerator is
idle. Without a server there is a single group, and the same calls step it in
order: select actions, act, observe.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from bt_acme.acting import behavior_scores, vector_actor
from bt_acme.environments import vector

Row = dict[str, float]


@dataclasses.dataclass(eq=False)
class Group:
  """Environments that step together, and the actor that acts in them.

  A step has three parts: `request` requests actions, `act` sends them to the
  environments, and `observe` receives the resulting observations and rewards.

  Attributes:
    environments: the environments.
    actor: the actor that acts in the environments.
    shown: the last output of the environments; None before their first reset.
  """

  environments: vector.VectorEnvironment
  actor: vector_actor.VectorActor
  shown: vector.VectorStep | None = None

  def request(self) -> None:
    """Requests the next actions, after resetting environments on first use."""
    if self.shown is None:
      self.shown = self.environments.reset()
    self.actor.request_actions(self.shown)

  def act(self) -> int:
    """Starts a step with the requested actions.

    Returns:
      The number of actor steps. Environments whose episode has ended only
      reset, which does not count as a step.
    """
    assert self.shown is not None
    self.environments.send(self.actor.receive_actions())
    self.actor.update()
    is_last = self.shown.is_last
    return int(len(is_last) - is_last.sum())

  def observe(self) -> list[Row]:
    """Completes the step; returns metrics of the episodes that it ended."""
    self.shown = self.environments.recv()
    return self.actor.observe(self.shown)


class Pipeline:
  """Pipeline that keeps all groups but one acting.

  Call `prime` once, then `step` repeatedly, and `drain` at the end.
  """

  def __init__(self, groups: list[Group]):
    """Initializes the pipeline without acting.

    Args:
      groups: one or more groups.
    """
    self.groups = groups

  def prime(self) -> int:
    """Starts a step of every group except the first.

    Returns:
      The number of actor steps.
    """
    for group in self.groups[1:]:
      group.request()
    return sum(group.act() for group in self.groups[1:])

  def step(self) -> tuple[int, list[Row]]:
    """Starts one step of every group.

    While a group acts, the next group observes its previous step and requests
    new actions.

    Returns:
      The number of actor steps, and metrics of the episodes that ended.
    """
    first, *others = self.groups
    first.request()
    actor_steps, episodes = first.act(), []
    for group in others:
      episodes += group.observe()
      group.request()
      actor_steps += group.act()
    return actor_steps, episodes + first.observe()

  def drain(self) -> list[Row]:
    """Completes the steps that were counted but not yet observed.

    Returns:
      Metrics of the episodes that ended in these steps.
    """
    return [row for group in self.groups[1:] for row in group.observe()]

  def statistics(self) -> dict[int, Any]:
    """Returns the statistics of the intrinsic reward of each group.

    The keys are the indices of the groups' first environments. The result is
    empty for an agent without an intrinsic reward.
    """
    return {
      group.actor.first_environment: group.actor.statistics()
      for group in self.groups
      if group.actor.intrinsic is not None
    }

  def share_scores(
    self,
    exchange: Callable[[list[behavior_scores.Scored]], behavior_scores.Scores],
  ) -> None:
    """Exchanges the scores of flights, whose priorities are learned.

    Args:
      exchange: the method of `behavior_scores.ScoreStore`.
    """
    learning = [g.actor.priorities for g in self.groups if g.actor.priorities]
    scores = exchange([scored for one in learning for scored in one.take()])
    for one in learning:
      one.replace(scores)

  def close(self) -> None:
    """Closes all environments."""
    for group in self.groups:
      group.environments.close()
