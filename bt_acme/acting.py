"""An agent acting in N environments at once, with one jitted call a step.

Everything that varies between environments (epsilon, recurrent state, flights,
behaviors' state, episodic memory) is kept per environment and seeded by its
index alone, so that N = 1 and N = 16 play the same episodes.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Protocol, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme import agent as agent_lib
from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.core.behavior_transfer import actor_core as bt_lib
from bt_acme.core.intrinsic import actor_core as ngu_lib
from bt_acme.core.intrinsic import ngu
from bt_acme.environments import vector


class Transition(NamedTuple):
  """One step of one environment, as replay takes it.

  Attributes:
    observation: uint8 [H, W, C * S], before the step.
    prev_action: int, executed before; -1 on an episode's first step.
    prev_reward: float, received before.
    recurrent_state: LSTMState, float32 [hidden], before the step.
    action: int, executed.
    choice: int, one of A + K.
    source: int, OWN, EXTRA or FLIGHT.
    probability: float, of the choice under the acting policy.
    reward: float, the one the agent maximizes.
    discount: float, the environment's.
  """

  observation: np.ndarray
  prev_action: int
  prev_reward: float
  recurrent_state: types.LSTMState
  action: int
  choice: int
  source: int
  probability: float
  reward: float
  discount: float


class TransitionSink(Protocol):
  """Where one environment's transitions go."""

  def add(self, transition: Transition) -> None:
    """Takes the next transition of the episode."""

  def end_episode(
    self, observation: np.ndarray, prev_action: int, prev_reward: float
  ) -> None:
    """Takes what the last transition of the episode led to."""


class _Episode:
  """Sums over one episode of one environment."""

  def __init__(self) -> None:
    self.task_return = 0.0
    self.intrinsic_return = 0.0
    self.length = 0
    self.flights = 0
    self.flight_length = 0
    self.sources = np.zeros(3, np.int64)
    self.greedy_extra = 0

  def metrics(self) -> Dict[str, float]:
    length = max(self.length, 1)
    return {
      'episode_return': self.task_return,
      'episode_length': self.length,
      'intrinsic_return': self.intrinsic_return,
      'flights': self.flights,
      'mean_flight_length': self.flight_length / max(self.flights, 1),
      'flight_share': self.sources[types.FLIGHT] / length,
      'behavior_share': self.sources[[types.EXTRA, types.FLIGHT]].sum()
      / length,
      'greedy_extra_share': self.greedy_extra / length,
    }


class VectorActor:
  """Acts in N environments.

  A turn is `select_actions` on what the environments show, a step of the
  environments, and `observe` on what that leads to.
  """

  def __init__(
    self,
    agent: agent_lib.Agent,
    *,
    epsilons: npt.ArrayLike,
    seed: int,
    first_environment: int = 0,
    evaluation: bool = False,
    sinks: Optional[Sequence[TransitionSink]] = None,
    statistics: Optional[ngu.IntrinsicStatistics] = None,
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
    """
    self._agent = agent
    epsilons = np.asarray(epsilons, np.float32)
    self._num = len(epsilons)
    self._sinks = sinks
    core = agent.actor_core(evaluation=evaluation)
    self._is_bt = isinstance(agent.config, config_lib.BTConfig)
    self._is_ngu = isinstance(agent.config, config_lib.NGUConfig)

    key = jax.random.key(seed)
    indices = jnp.arange(first_environment, first_environment + self._num)
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(indices)
    self._state = jax.vmap(core.init)(keys, jnp.asarray(epsilons))
    axes: Any = None
    if self._is_ngu:
      axes = ngu_lib.NGUParams(agent=None, embedding=0, rnd=None)

    def step(params: Any, inputs: Any, state: Any) -> Any:
      action, state = jax.vmap(core.select_action, in_axes=(axes, 0, 0))(
        params, inputs, state
      )
      return action, state, jax.vmap(core.get_extras)(state)

    self._step = jax.jit(step, donate_argnums=2)
    self._refresh = jax.jit(ngu_lib.where_first, donate_argnums=2)
    self._hosts = [
      behavior.make_host(
        self._num, agent.spec.num_actions, seed * 10_000_019 + first_environment
      )
      for behavior in agent.behaviors
    ]
    self._behavior_params = tuple(
      jax.device_put(behavior.params()) for behavior in agent.behaviors
    )
    self._intrinsic: Optional[ngu.IntrinsicReward] = None
    if isinstance(agent.config, config_lib.NGUConfig):
      self._intrinsic = ngu.IntrinsicReward(agent.config.intrinsic, self._num)
    if statistics is not None:
      self.restore_statistics(statistics)

    self._params: Any = None
    self._ngu: Optional[ngu_lib.NGUParams] = None
    self._embedding: Any = None
    self._action = np.zeros(self._num, np.int32)
    self._reward = np.zeros(self._num, np.float32)
    self._episodes = [_Episode() for _ in range(self._num)]
    self._turn: Any = None

  def update_variables(self, variables: agent_lib.Variables) -> None:
    """Acts with these parameters from now on; an embedding, from the next
    episode of each environment on."""
    variables = jax.device_put(variables)
    if self._is_ngu:
      self._ngu = agent_lib.ngu_params(variables)
      if self._embedding is None:
        self._embedding = jax.tree.map(
          lambda x: jnp.repeat(x[None], self._num, axis=0), self._ngu.embedding
        )
    elif self._is_bt:
      self._params = bt_lib.BTParams(variables.agent, self._behavior_params)
    else:
      self._params = variables.agent

  def statistics(self) -> Optional[ngu.IntrinsicStatistics]:
    """Of the intrinsic reward, one for each environment; None without."""
    return None if self._intrinsic is None else self._intrinsic.statistics()

  def restore_statistics(self, statistics: ngu.IntrinsicStatistics) -> None:
    """Goes on from statistics of the intrinsic reward; nothing without one."""
    if self._intrinsic is not None:
      self._intrinsic.restore(statistics)

  def select_actions(self, step: vector.VectorStep) -> np.ndarray:
    """Chooses an action for each environment.

    Args:
      step: what the environments show. Where `is_last` is set the action is of
        no consequence: the environment starts anew.

    Returns:
      int32 [N], primitive actions.
    """
    is_first = step.is_first
    prev_action = np.where(is_first, types.NO_ACTION, self._action)
    prev_action = prev_action.astype(np.int32)
    prev_reward = np.where(is_first, 0, self._reward).astype(np.float32)
    seen: Any = (step.observation, prev_action, prev_reward, is_first)
    inputs: Any = types.AgentInput(*seen)
    if self._is_bt:
      feeds = tuple(
        host.feed(step.observation, prev_action, is_first, step.is_last)
        for host in self._hosts
      )
      inputs = bt_lib.BTInput(inputs, feeds)
    params = self._params
    if self._ngu is not None:
      if is_first.any():
        self._embedding = self._refresh(
          is_first, self._ngu.embedding, self._embedding
        )
      params = self._ngu._replace(embedding=self._embedding)
    if params is None:
      raise RuntimeError('update_variables must come before select_actions.')

    action, self._state, extras = self._step(params, inputs, self._state)
    self._action = np.array(action)
    features = extras.pop('features', None)
    extras = jax.tree.map(np.asarray, extras)
    if self._intrinsic is not None:
      self._reward = self._intrinsic.step(
        np.asarray(features.embedding),
        np.asarray(features.error),
        is_first,
        ~step.is_last,
      )
    if self._is_bt:
      for host, host_features in zip(self._hosts, features, strict=True):
        host.digest(host_features)
    self._turn = (step, prev_action, prev_reward, extras)
    return self._action

  def observe(self, step: vector.VectorStep) -> List[Dict[str, float]]:
    """Takes what the actions led to.

    Args:
      step: what the environments show now.

    Returns:
      Metrics of the episodes that ended here.
    """
    before, prev_action, prev_reward, extras = self._turn
    if self._intrinsic is None:
      self._reward = step.reward.astype(np.float32)
    finished = []
    for i in range(self._num):
      if before.is_last[i]:
        continue  # A step from one episode to the next.
      self._count(i, float(step.reward[i]), extras)
      if self._sinks is not None:
        self._sinks[i].add(
          Transition(
            observation=before.observation[i],
            prev_action=prev_action[i],
            prev_reward=prev_reward[i],
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
        )
      if step.is_last[i]:
        if self._sinks is not None:
          self._sinks[i].end_episode(
            step.observation[i], self._action[i], self._reward[i]
          )
        finished.append(self._episodes[i].metrics())
        self._episodes[i] = _Episode()
    return finished

  def _discount(self, step: vector.VectorStep, i: int) -> float:
    if step.is_last[i] and not self._agent.config.acting.bootstrap_truncations:
      return 0.0
    return float(step.discount[i])

  def _count(self, i: int, task_reward: float, extras: Dict[str, Any]) -> None:
    episode = self._episodes[i]
    episode.length += 1
    episode.task_return += task_reward
    if self._intrinsic is not None:
      episode.intrinsic_return += float(self._reward[i])
    episode.sources[extras['source'][i]] += 1
    greedy = extras['greedy_choice'][i]
    episode.greedy_extra += int(greedy >= self._agent.spec.num_actions)
    if 'flight_length' in extras and extras['flight_length'][i]:
      episode.flights += 1
      episode.flight_length += int(extras['flight_length'][i])
