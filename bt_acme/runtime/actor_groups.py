"""The environments of one actor, in groups that take turns.

With an inference server an actor has two groups. One of them emulates while the
other waits for its actions, so that neither the emulators nor the accelerator
idle. Without a server there is one group, and the same calls step it in plain
order: choose, act, observe.
"""

from typing import Any, Dict, List, Optional, Tuple

from bt_acme.acting import vector_actor
from bt_acme.environments import vector

Row = Dict[str, float]


class Group:
  """Environments that step together, and the actor that acts in them.

  A step has three parts: `request` asks for actions, `act` sends the actions to
  the environments, and `observe` takes what the environments answer.

  Attributes:
    actor: the actor that acts in the environments.
    environments: the environments.
    first_environment: the index of the first of them in the run.
    shown: what the environments show; None before their first reset.
  """

  def __init__(
    self,
    environments: vector.Environments,
    actor: vector_actor.VectorActor,
    first_environment: int = 0,
  ):
    """Initializes a group that has taken no step.

    Args:
      environments: the environments of the group.
      actor: the actor that acts in them.
      first_environment: the index of the first of them in the run.
    """
    self.first_environment = first_environment
    self.environments = environments
    self.actor = actor
    self.shown: Optional[vector.VectorStep] = None

  def request(self) -> None:
    """Asks for the next actions."""
    if self.shown is None:
      self.shown = self.environments.reset()
    self.actor.request_actions(self.shown)

  def act(self) -> int:
    """Starts a step with the requested actions.

    Returns:
      The number of actor steps that this takes. An environment whose episode
      has ended only resets, which is not counted.
    """
    assert self.shown is not None
    self.environments.send(self.actor.receive_actions())
    self.actor.update()
    is_last = self.shown.is_last
    return int(len(is_last) - is_last.sum())

  def observe(self) -> List[Row]:
    """Ends the step; returns metrics of the episodes that ended with it."""
    self.shown = self.environments.recv()
    return self.actor.observe(self.shown)


class Pipeline:
  """Keeps all groups but one acting.

  `prime` is called once, then `turn` again and again, and `drain` in the end.
  """

  def __init__(self, groups: List[Group]):
    """Takes at least one group; nothing acts yet."""
    self.groups = groups

  def prime(self) -> int:
    """Has all groups but the first one act.

    Returns:
      The number of actor steps that this takes.
    """
    for group in self.groups[1:]:
      group.request()
    return sum(group.act() for group in self.groups[1:])

  def turn(self) -> Tuple[int, List[Row]]:
    """Has every group act once.

    While a group acts, the next one observes its last step and asks for new
    actions.

    Returns:
      The number of actor steps that this takes, and metrics of the episodes
      that ended.
    """
    first, *others = self.groups
    first.request()
    actor_steps, episodes = first.act(), []
    for group in others:
      episodes += group.observe()
      group.request()
      actor_steps += group.act()
    return actor_steps, episodes + first.observe()

  def drain(self) -> List[Row]:
    """Observes the steps that were counted and have not been observed.

    Returns:
      Metrics of the episodes that ended with them.
    """
    return [row for group in self.groups[1:] for row in group.observe()]

  def statistics(self) -> Dict[int, Any]:
    """Returns the statistics of the reward by a group's first environment.

    The result is empty for an agent without an intrinsic reward.
    """
    by_group = {g.first_environment: g.actor.statistics() for g in self.groups}
    return {
      first: statistics
      for first, statistics in by_group.items()
      if statistics is not None
    }

  def close(self) -> None:
    """Closes all environments."""
    for group in self.groups:
      group.environments.close()
