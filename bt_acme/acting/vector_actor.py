"""Acting in N environments at once, with one jitted call per vector step.

The policy makes the call (`policy.py`). This module handles the host side: the
intrinsic reward, the behaviors' host sides, transitions and episodes.
Everything that varies between environments is stored per environment and
seeded only by its index. An actor with one environment and an actor with
sixteen therefore play the same episodes.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from bt_acme import assembly
from bt_acme.acting import batched_core, behavior_scores
from bt_acme.acting import behavior as behavior_lib
from bt_acme.acting import episode as episode_lib
from bt_acme.acting import policy as policy_lib
from bt_acme.core import transition as transition_lib
from bt_acme.core import types
from bt_acme.core.intrinsic import host_reward
from bt_acme.environments import saving, vector

# The observation, action and reward that end an episode; None before the end.
Final = tuple[np.ndarray, int, float] | None
# The values of a transition that the actor core returns; `proposal` if needed.
_FROM_CORE = ('choice', 'source', 'probability', 'q_values', 'proposal')


class VectorActor:
  """Acts in N environments.

  A vector step consists of `select_actions` on the current observations, a step
  of the environments, and `observe` with the outcome. For more speed,
  `request_actions` and `receive_actions` replace `select_actions`, so that this
  process can work while another process selects actions, and `update` is called
  while the environments step.

  Attributes:
    first_environment: index of the first environment in the whole run.
    sinks: the N sinks; empty if nothing is recorded.
    intrinsic: the environments' intrinsic rewards; None without pre-training.
    priorities: the learned priorities of the behaviors; None if their weights
      are constant, as in evaluations.
  """

  def __init__(
    self,
    agent: assembly.Agent,
    *,
    epsilons: npt.ArrayLike,
    seed: int,
    first_environment: int = 0,
    evaluation: bool = False,
    sinks: Sequence[Any] | None = None,
    statistics: policy_lib.Statistics | None = None,
    policy: Any = None,
    scores: behavior_scores.Scores | None = None,
  ):
    """Initializes the actor.

    Args:
      agent: the agent that acts.
      epsilons: epsilon of every environment, [N] (`core/epsilon.py`).
      seed: the run's seed.
      first_environment: index of the first environment in the whole run. This
        index and `seed` determine the environment's random numbers.
      evaluation: whether to disable flights.
      sinks: N objects that receive the transitions of each environment in order
        through `add`, and the outcome of an episode's last one through
        `end_episode`, like `SequenceSink`; None to record nothing.
      statistics: the statistics of the intrinsic reward to resume from; one for
        each environment, or one for all.
      policy: selects the actions, with its own epsilons, seed and flights, such
        as a `RemotePolicy`; None to select actions in this process.
      scores: with `flight_priorities='learned'`, the scores from which to learn
        on; None for constant weights.
    """
    self._agent = agent
    self._num = np.size(epsilons)
    self._epsilons = np.asarray(epsilons, np.float64)
    self.first_environment = first_environment
    self.sinks = sinks or ()
    self._policy = policy or policy_lib.VectorPolicy(
      agent,
      epsilons=epsilons,
      seed=seed,
      first_environment=first_environment,
      evaluation=evaluation,
    )
    transfer, num_behaviors = agent.transfer, len(agent.behaviors)
    self._hosts = behavior_lib.make_hosts(
      agent.behaviors,
      agent.spec.num_actions,
      seed=seed,
      environments=range(first_environment, first_environment + self._num),
      proposers=(
        transfer.proposers(num_behaviors, evaluation=evaluation)
        if transfer
        else ()
      ),
    )
    self.intrinsic: host_reward.HostReward | None = None
    # Whether an action gets the reward of the observation that it leads to.
    self._rewards_next = False
    if agent.intrinsic is not None:
      config = agent.intrinsic.config
      self.intrinsic = host_reward.HostReward(config, self._num)
      self._rewards_next = config.rewards_next
    if statistics is not None:
      self.restore_statistics(statistics)
    self.priorities: behavior_scores.GroupPriorities | None = None
    if scores is not None:
      self.priorities = behavior_scores.GroupPriorities(agent, scores)

    self._action = np.zeros(self._num, np.int32)
    self._reward = np.zeros(self._num, np.float32)
    self.discard_episodes()
    self._turns = 0
    self._zeros = np.zeros(self._num, np.int32)  # For agents without flights.
    # The inputs of the current vector step, and the policy's answer.
    self._step: Any = None
    self._inputs: Any = None
    self._extras: Any = None
    self._features: Any = None  # None after `update` has used them.
    # By environment, the transitions whose reward is not known yet.
    self._waiting: dict[int, tuple[transition_lib.Transition, Final]] = {}

  def update_variables(self, variables: assembly.Variables) -> None:
    """Replaces the parameters.

    The embedding of each environment changes when its next episode starts.
    """
    self._policy.update_variables(variables)

  @property
  def awaits_reward(self) -> bool:
    """Whether a transition still lacks the reward of its next observation."""
    return bool(self._waiting)

  @property
  def sources(self) -> np.ndarray:
    """The sources of the last actions, uint8 [N]: OWN, EXTRA or FLIGHT."""
    return self._extras['source']

  @property
  def in_control(self) -> np.ndarray:
    """The behaviors of the last actions, int [N]; any where the source is OWN.

    In a flight, a behavior without an extra action has no choice of its own.
    """
    transfer = self._agent.transfer
    if transfer is None:
      return np.zeros(self._num, np.int64)
    extra = np.array([*transfer.extra_behaviors(len(self._agent.behaviors)), 0])
    number = self._extras['choice'] - self._agent.spec.num_actions
    return np.where(
      self._extras['source'] == types.FLIGHT,
      self._extras['flight_behavior'],
      extra[np.maximum(number, 0)],
    )

  def statistics(self) -> policy_lib.Statistics | None:
    """Returns the intrinsic reward's statistics, [N]; None without a reward."""
    return None if self.intrinsic is None else self.intrinsic.statistics()

  def restore_statistics(self, statistics: policy_lib.Statistics) -> None:
    """Restores the statistics of the intrinsic reward, if there is one."""
    if self.intrinsic is not None:
      self.intrinsic.restore_statistics(statistics)
      self._policy.restore_statistics(self.intrinsic.statistics())

  def state(self) -> saving.State:
    """Returns the serializable state on which future steps depend.

    Call this method between two vector steps, after `observe`. The state does
    not include the sinks.
    """
    return {
      'policy': self._policy.state(),
      'hosts': [host.state() for host in self._hosts],
      'intrinsic': None if self.intrinsic is None else self.intrinsic.state(),
      'episodes': [episode.state() for episode in self._episodes],
      'priorities': self.priorities and self.priorities.state(),
      'action': self._action.copy(),
      'reward': self._reward.copy(),
      'turns': self._turns,
      'epsilons': self._epsilons.copy(),
      'waiting': {
        i: (transition_lib.to_plain(transition), final)
        for i, (transition, final) in self._waiting.items()
      },
    }

  def restore(self, state: saving.State) -> None:
    """Restores a state returned by `state()`, after `update_variables`."""
    self._policy.restore(state['policy'])
    self._epsilons = state['epsilons'].copy()
    for host, own in zip(self._hosts, state['hosts'], strict=True):
      host.restore(own)
    if self.intrinsic is not None:
      self.intrinsic.restore(state['intrinsic'])
    self._episodes = [
      episode_lib.EpisodeMetrics.restored(sums) for sums in state['episodes']
    ]
    if self.priorities is not None:
      self.priorities.restore(state['priorities'])
    self._action, self._reward = state['action'], state['reward']
    self._turns = state['turns']
    self._waiting = {
      i: (transition_lib.from_plain(values), final)
      for i, (values, final) in state['waiting'].items()
    }

  def discard_episodes(self) -> None:
    """Discards unfinished episodes; all environments then start new ones."""
    self._episodes = [episode_lib.EpisodeMetrics() for _ in range(self._num)]

  def select_actions(self, step: vector.VectorStep) -> np.ndarray:
    """Selects an action for each environment.

    Args:
      step: the current step of the environments. The action for an environment
        whose episode has ended has no effect, because a new episode starts.

    Returns:
      int32 [N], primitive actions.
    """
    self.request_actions(step)
    return self.receive_actions()

  def request_actions(self, step: vector.VectorStep) -> None:
    """Requests the actions of `select_actions` without waiting for them."""
    is_first = step.is_first
    prev_action = np.where(is_first, types.NO_ACTION, self._action)
    prev_action = prev_action.astype(np.int32)
    prev_reward = np.where(is_first, 0, self._reward).astype(np.float32)
    shown = (step.observation, prev_action, is_first, step.is_last)
    shown = behavior_lib.read_only(shown)
    host_inputs = tuple(host.inputs(*shown) for host in self._hosts)
    weights: Any = ()
    if self.priorities is not None:
      probabilities = self.priorities.probabilities().astype(np.float32)
      weights = np.tile(probabilities, (self._num, 1))
    self._step = step
    self._inputs = batched_core.PolicyInput(
      step.observation,
      prev_action,
      prev_reward,
      is_first,
      step.is_last,
      host_inputs,
      weights,
    )
    self._policy.request(self._inputs)

  def receive_actions(self) -> np.ndarray:
    """Waits for the requested actions, int32 [N]."""
    self._action, self._extras = self._policy.receive()
    self._features = self._extras.pop('features', ())
    if self._agent.behaviors:
      proposals = self._extras.pop('proposals')
      behavior_lib.check_proposals(
        self._agent.behaviors,
        proposals,
        num_actions=self._agent.spec.num_actions,
        actor_step=self._turns,
        first_environment=self.first_environment,
      )
      if self._agent.replay_layout.has_proposals:
        drawn = self._extras['flight_behavior']
        self._extras['proposal'] = proposals[np.arange(self._num), drawn]
    self._turns += 1
    return self._action

  def update(self) -> None:
    """Computes rewards and updates memories, which only the next step needs.

    `observe` calls this method unless it was already called for this step.
    """
    features, self._features = self._features, None
    if features is None:
      return
    if self.intrinsic is not None:
      (own,) = features
      self._reward = self.intrinsic.take(
        own, self._step.is_first, self._step.is_last
      )
    else:
      for k, host in enumerate(self._hosts):
        host.skip(self._extras['skipped'][:, k])
        host.update(features[k])
    for i, (transition, final) in self._waiting.items():
      if not self._step.is_first[i]:  # Else it was discarded.
        self._record(i, transition._replace(reward=self._reward[i]), final)
    self._waiting = {}

  def observe(self, step: vector.VectorStep) -> list[dict[str, float]]:
    """Records the outcome of the last actions.

    Args:
      step: the step of the environments after the actions.

    Returns:
      Metrics of the episodes that end with this step, including the index
      `environment`, its epsilon and, with behavior transfer, the drawn
      `flight_probability`, the behavior that flew, and its priorities.
    """
    self.update()
    if self.intrinsic is None:
      self._reward = step.reward.astype(np.float32)
    finished = []
    for i in np.flatnonzero(~self._step.is_last):
      # The other environments have just started a new episode.
      self._count(i, float(step.reward[i]))
      if self.sinks:
        self._take_transition(i, step)
      if step.is_last[i]:
        finished.append(self._end_episode(i))
    return finished

  def _end_episode(self, i: int) -> dict[str, float]:
    """Returns the metrics of an environment's episode, which has ended."""
    episode, self._episodes[i] = self._episodes[i], episode_lib.EpisodeMetrics()
    row = {
      **episode.metrics(),
      'environment': self.first_environment + int(i),
      'epsilon': float(self._epsilons[i]),
    }
    if self._agent.behaviors:
      row['flight_probability'] = float(self._extras['flight_probability'][i])
      row.update(episode.flight_metrics())
    if self.priorities is not None:
      row.update(self.priorities.row())
      self.priorities.add(episode)
    return row

  def _take_transition(self, i: int, step: vector.VectorStep) -> None:
    """Records an environment's transition, now or once its reward is known."""
    inputs, extras, is_last = self._inputs, self._extras, step.is_last[i]
    bootstraps = self._agent.config.acting.bootstrap_truncations or not is_last
    transition = transition_lib.Transition(
      observation=self._step.observation[i],
      prev_action=inputs.prev_action[i],
      prev_reward=inputs.prev_reward[i],
      recurrent_state=jax.tree.map(lambda x: x[i], extras['recurrent_state']),
      action=self._action[i],
      reward=self._reward[i],
      discount=float(step.discount[i]) if bootstraps else 0.0,
      **{name: extras[name][i] for name in _FROM_CORE if name in extras},
    )
    final = None
    if is_last:
      final = (step.observation[i], self._action[i], self._reward[i])
    if self._rewards_next:
      self._waiting[i] = transition, final
    else:
      self._record(i, transition, final)

  def _record(
    self, i: int, transition: transition_lib.Transition, final: Final
  ) -> None:
    """Sends a transition to the sink, and the end of the episode if reached."""
    self.sinks[i].add(transition)
    if final is not None:
      self.sinks[i].end_episode(*final)

  def _count(self, i: int, task_reward: float) -> None:
    """Adds a step to the episode metrics of an environment."""
    extras, zeros = self._extras, self._zeros
    intrinsic_reward, alpha = 0.0, None
    if self.intrinsic is not None:
      intrinsic_reward = float(self._reward[i])
      if self.intrinsic.alpha is not None:
        alpha = float(self.intrinsic.alpha[i])
    self._episodes[i].count(
      source=extras['source'][i],
      flight_length=extras.get('flight_length', zeros)[i],
      flight_behavior=extras.get('flight_behavior', zeros)[i],
      task_reward=task_reward,
      intrinsic_reward=intrinsic_reward,
      alpha=alpha,
      greedy_extra=extras['greedy_choice'][i] >= self._agent.spec.num_actions,
      observation=self._checksum(i),
    )

  def _checksum(self, i: int) -> int | None:
    """Returns a checksum of an observation, if the priorities need it."""
    if self.priorities is None or not self.priorities.counts_observations:
      return None
    return zlib.crc32(self._step.observation[i].tobytes())
