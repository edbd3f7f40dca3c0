"""An agent acting in N environments at once, with one jitted call a step.

The call is `inference`'s; here is what surrounds it on the host: the intrinsic
reward, the behaviors' host sides, transitions and episodes. Whatever varies
between environments is kept per environment and seeded by its index alone, so
that N = 1 and N = 16 play the same episodes.
"""

from typing import (
  Any,
  Dict,
  List,
  Optional,
  Sequence,
  Tuple,
)

import jax
import numpy as np
import numpy.typing as npt

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.acting import behavior as behavior_lib
from bt_acme.acting import policy as policy_lib
from bt_acme.acting import transition as transition_lib
from bt_acme.core import types
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.environments import vector


class _Episode:
  """Sums over one episode of one environment.

  The intrinsic return is of the observations that were acted on, whichever
  action each rewards.
  """

  def __init__(self) -> None:
    self.task_return = 0.0
    self.intrinsic_return = 0.0
    self.length = 0
    self.flights = 0
    self.sources = np.zeros(3, np.int64)
    self.greedy_extra = 0

  def metrics(self) -> Dict[str, float]:
    length = max(self.length, 1)
    return {
      'episode_return': self.task_return,
      'episode_length': self.length,
      'intrinsic_return': self.intrinsic_return,
      'flights': self.flights,
      # As flown: an episode's end cuts the last one.
      'mean_flight_length': self.sources[types.FLIGHT] / max(self.flights, 1),
      'flight_share': self.sources[types.FLIGHT] / length,
      'behavior_share': self.sources[[types.EXTRA, types.FLIGHT]].sum()
      / length,
      'greedy_extra_share': self.greedy_extra / length,
    }


class VectorActor:
  """Acts in N environments.

  A turn is `select_actions` on what the environments show, a step of the
  environments, and `observe` on what that leads to. Where time counts,
  `request_actions` and `receive_actions` take the place of the first, so that
  other work is done while another process chooses, and `digest` comes while
  the environments step.

  Attributes:
    intrinsic: the environments' intrinsic rewards; None but for NGU.
  """

  def __init__(
    self,
    agent: assembly.Agent,
    *,
    epsilons: npt.ArrayLike,
    seed: int,
    first_environment: int = 0,
    evaluation: bool = False,
    sinks: Optional[Sequence[transition_lib.TransitionSink]] = None,
    statistics: Optional[reward_lib.IntrinsicStatistics] = None,
    policy: Optional[policy_lib.Policy] = None,
  ):
    """Builds the actor.

    Args:
      agent: what acts.
      epsilons: [N], one an environment.
      seed: of the run.
      first_environment: index of the first environment in the whole run, which
        seeds it together with `seed`.
      evaluation: leaves flights out.
      sinks: N, where transitions go; None to record nothing.
      statistics: of the intrinsic reward, to go on from; one for each
        environment or one for all.
      policy: that chooses, with epsilons, seed and flights of its own; None to
        choose here.
    """
    self._agent = agent
    self._num = np.size(epsilons)
    self._sinks = sinks
    self._is_bt = isinstance(agent.config, config_lib.BTConfig)
    self._policy: policy_lib.Policy = policy or policy_lib.VectorPolicy(
      agent,
      epsilons=epsilons,
      seed=seed,
      first_environment=first_environment,
      evaluation=evaluation,
    )
    self._hosts = behavior_lib.make_hosts(
      agent.behaviors,
      agent.spec.num_actions,
      seed=seed,
      environments=range(first_environment, first_environment + self._num),
    )
    self.intrinsic: Optional[reward_lib.IntrinsicReward] = None
    if isinstance(agent.config, config_lib.NGUConfig):
      self.intrinsic = reward_lib.IntrinsicReward(
        agent.config.intrinsic, self._num
      )
    if statistics is not None:
      self.restore_statistics(statistics)

    # An action's reward is what its next observation brings.
    self._rewards_next = (
      isinstance(agent.config, config_lib.NGUConfig)
      and agent.config.intrinsic.reward_observation == 'next'
    )

    self._action = np.zeros(self._num, np.int32)
    self._reward = np.zeros(self._num, np.float32)
    self._episodes = [_Episode() for _ in range(self._num)]
    self._turns = 0
    # Of the turn: what it started from, and what came of it.
    self._step: Any = None
    self._inputs: Any = None
    self._extras: Any = None
    self._features: Any = None  # Until they are digested.
    # By environment, transitions that wait for the reward.
    self._waiting: Dict[int, Tuple[transition_lib.Transition, Any]] = {}

  def update_variables(self, variables: assembly.Variables) -> None:
    """Acts with these parameters from now on; an embedding, from the next
    episode of each environment on."""
    self._policy.update_variables(variables)

  @property
  def awaits_reward(self) -> bool:
    """Whether the last transition waits for what came of it to be chosen on."""
    return bool(self._waiting)

  def statistics(self) -> Optional[reward_lib.IntrinsicStatistics]:
    """Of the intrinsic reward, one for each environment; None without."""
    return None if self.intrinsic is None else self.intrinsic.statistics()

  def restore_statistics(
    self, statistics: reward_lib.IntrinsicStatistics
  ) -> None:
    """Goes on from statistics of the intrinsic reward; nothing without one."""
    if self.intrinsic is not None:
      self.intrinsic.restore(statistics)
      self._policy.restore_statistics(self.intrinsic.statistics())

  def select_actions(self, step: vector.VectorStep) -> np.ndarray:
    """Chooses an action for each environment.

    Args:
      step: what the environments show. Where `is_last` is set the action is of
        no consequence: the environment starts anew.

    Returns:
      int32 [N], primitive actions.
    """
    self.request_actions(step)
    return self.receive_actions()

  def request_actions(self, step: vector.VectorStep) -> None:
    """Starts to choose, as `select_actions` does, without waiting."""
    is_first = step.is_first
    prev_action = np.where(is_first, types.NO_ACTION, self._action)
    prev_action = prev_action.astype(np.int32)
    prev_reward = np.where(is_first, 0, self._reward).astype(np.float32)
    shown = (step.observation, prev_action, is_first, step.is_last)
    shown = behavior_lib.read_only(shown)
    feeds = tuple(host.feed(*shown) for host in self._hosts)
    self._step = step
    self._inputs = policy_lib.PolicyInput(
      step.observation,
      prev_action,
      prev_reward,
      is_first,
      step.is_last,
      feeds,
    )
    self._policy.request(self._inputs)

  def receive_actions(self) -> np.ndarray:
    """Waits for the actions that were requested."""
    self._action, self._extras = self._policy.receive()
    self._features = self._extras.pop('features', ())
    if self._is_bt:
      behavior_lib.check_proposals(
        self._agent.behaviors,
        self._extras.pop('proposals'),
        num_actions=self._agent.spec.num_actions,
        actor_step=self._turns,
      )
    self._turns += 1
    return self._action

  def digest(self) -> None:
    """Does what only the next turn needs: rewards and remembers what was seen.

    `observe` does it where it has not been done.
    """
    features, self._features = self._features, None
    if features is None:
      return
    if isinstance(features, reward_lib.Rewarded):
      assert self.intrinsic is not None
      self._reward = self.intrinsic.take(features)
    elif self.intrinsic is not None:
      self._reward = self.intrinsic.step(
        np.asarray(features.embedding),
        np.asarray(features.error),
        self._step.is_first,
        # The last observation is rewarded where one before it was not.
        ~self._step.is_last | self._rewards_next,
      )
    if self._is_bt:
      for host, host_features in zip(self._hosts, features, strict=True):
        host.digest(host_features)
    for i, (transition, final) in self._waiting.items():
      if not self._step.is_first[i]:  # Or the episode was broken off.
        self._record(i, transition._replace(reward=self._reward[i]), final)
    self._waiting = {}

  def observe(self, step: vector.VectorStep) -> List[Dict[str, float]]:
    """Takes what the actions led to.

    Args:
      step: what the environments show now.

    Returns:
      Metrics of the episodes that ended here.
    """
    self.digest()
    before, inputs, extras = self._step, self._inputs, self._extras
    if self.intrinsic is None:
      self._reward = step.reward.astype(np.float32)
    finished = []
    for i in range(self._num):
      if before.is_last[i]:
        continue  # A step from one episode to the next.
      self._count(i, float(step.reward[i]), extras)
      if self._sinks is not None:
        transition = transition_lib.Transition(
          observation=before.observation[i],
          prev_action=inputs.prev_action[i],
          prev_reward=inputs.prev_reward[i],
          recurrent_state=jax.tree.map(
            lambda x, i=i: x[i], extras['recurrent_state']
          ),
          action=self._action[i],
          choice=extras['choice'][i],
          source=extras['source'][i],
          probability=extras['probability'][i],
          reward=self._reward[i],
          discount=self._discount(step, i),
        )
        final = None
        if step.is_last[i]:
          final = (step.observation[i], self._action[i], self._reward[i])
        if self._rewards_next:
          self._waiting[i] = transition, final
        else:
          self._record(i, transition, final)
      if step.is_last[i]:
        finished.append(self._episodes[i].metrics())
        self._episodes[i] = _Episode()
    return finished

  def _record(
    self, i: int, transition: transition_lib.Transition, final: Any
  ) -> None:
    """Hands a transition on, and what it led to where that ends the episode."""
    assert self._sinks is not None
    self._sinks[i].add(transition)
    if final is not None:
      self._sinks[i].end_episode(*final)

  def _discount(self, step: vector.VectorStep, i: int) -> float:
    if step.is_last[i] and not self._agent.config.acting.bootstrap_truncations:
      return 0.0
    return float(step.discount[i])

  def _count(self, i: int, task_reward: float, extras: Dict[str, Any]) -> None:
    episode = self._episodes[i]
    episode.length += 1
    episode.task_return += task_reward
    if self.intrinsic is not None:
      episode.intrinsic_return += float(self._reward[i])
    episode.sources[extras['source'][i]] += 1
    greedy = extras['greedy_choice'][i]
    episode.greedy_extra += int(greedy >= self._agent.spec.num_actions)
    if 'flight_length' in extras:
      episode.flights += int(extras['flight_length'][i] > 0)
