"""Every setting of the agents, grouped by who reads it.

The defaults are the paper's (Campos et al. 2021, arXiv:2102.13515, App. A, and
the papers it derives from: R2D2, NGU, Agent57); where it is silent the field
says so. Field names are unique across groups, so that each is one flag of the
launch scripts (`bt_acme.cli.flags`), whose help is the text below.
"""

import dataclasses
import math
from typing import Any, Dict, Mapping

# Longer flights than episodes have steps; a table of it is made at the start.
_LONGEST_FLIGHT = 10_000_000


def _check(condition: bool, message: str) -> None:
  if not condition:
    raise ValueError(message)


def check_finite(settings: Any) -> None:
  """Raises ValueError for a field that is NaN or infinite.

  Args:
    settings: a dataclass.
  """
  for field in dataclasses.fields(settings):
    value = getattr(settings, field.name)
    _check(
      not isinstance(value, float) or math.isfinite(value),
      f'{field.name}={value} must be finite.',
    )


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
  """The Q-network: torso, LSTM, dueling head (Agent57's).

  Attributes:
    torso: `nature` (84x84 frames, three VALID convolutions), `small` (for
      observations below 36 pixels a side), or `auto`, which looks at the
      observation.
    torso_size: units of the fully connected layer behind the convolutions.
    lstm_size: units of the LSTM; 0 leaves it out.
    head_size: hidden units of each stream of the dueling head.
    reward_input: how the previous reward enters: `tanh`, `signed_hyperbolic`
      or `raw`. The papers do not say; must agree between the two stages.
    torso_dtype: `float32` or `bfloat16`, for convolutions and torso only.
  """

  torso: str = 'auto'
  torso_size: int = 512
  lstm_size: int = 512
  head_size: int = 512
  reward_input: str = 'tanh'
  torso_dtype: str = 'float32'

  def __post_init__(self) -> None:
    for name, allowed in (
      ('torso', ('auto', 'nature', 'small')),
      ('reward_input', ('tanh', 'signed_hyperbolic', 'raw')),
      ('torso_dtype', ('float32', 'bfloat16')),
    ):
      value = getattr(self, name)
      _check(
        value in allowed, f'{name}={value!r} is unknown: choose from {allowed}.'
      )
    for name in ('torso_size', 'head_size'):
      _check(
        getattr(self, name) > 0,
        f'{name}={getattr(self, name)} must be positive.',
      )
    _check(
      self.lstm_size >= 0,
      f'lstm_size={self.lstm_size} must be positive, or 0 for no LSTM.',
    )


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
  """What the replay keeps, and when the learner may read it.

  Attributes:
    trace_length: steps of a sequence that are trained.
    burn_in_length: steps before them that only warm the LSTM up. The paper's
      160 "without burn-in" may mean that there is none, as read here, or that
      it is not counted.
    sequence_period: steps between two starts; must divide the sequence's
      length. The paper says that sequences overlap, not how far; Agent57's 80.
    max_replay_size: sequences kept; the oldest leave first.
    min_replay_size: sequences inserted before the learner may sample. The
      paper does not say; NGU's 6250.
    samples_per_insert: how often a sequence is sampled on average. The paper
      does not say; 0.4 gives R2D2's 0.8 replays of an observation.
    priority_exponent: of the sampling distribution.
    max_priority_weight: weight of the largest TD error in a sequence's
      priority; the mean has the rest.
    initial_priority: of a new sequence: `largest` of those so far, or `one`.
      The papers do not say. Acme's own layouts give their adders nobody to ask:
      there it is always `one`.
    codec: how sequences lie in a Reverb table. `blocks`, which only this
      package reads, or `tensors`, which any Acme learner does, at many times
      the memory (`bt_acme.replay.codecs`).
  """

  trace_length: int = 160
  burn_in_length: int = 0
  sequence_period: int = 80
  max_replay_size: int = 125_000
  min_replay_size: int = 6_250
  samples_per_insert: float = 0.4
  priority_exponent: float = 0.9
  max_priority_weight: float = 0.9
  initial_priority: str = 'largest'
  codec: str = 'blocks'

  def __post_init__(self) -> None:
    for name in (
      'trace_length',
      'sequence_period',
      'max_replay_size',
      'min_replay_size',
    ):
      _check(
        getattr(self, name) > 0,
        f'{name}={getattr(self, name)} must be positive.',
      )
    _check(
      self.burn_in_length >= 0,
      f'burn_in_length={self.burn_in_length} must not be negative.',
    )
    _check(
      self.sequence_length % self.sequence_period == 0,
      f'sequence_period={self.sequence_period} does not divide the length of a '
      f'sequence, burn_in_length + trace_length = {self.sequence_length}: '
      'overlapping sequences share blocks of one period. Choose a divisor.',
    )
    _check(
      self.min_replay_size <= self.max_replay_size,
      f'min_replay_size={self.min_replay_size} exceeds '
      f'max_replay_size={self.max_replay_size}: the learner would wait for '
      'ever. Lower min_replay_size or raise max_replay_size.',
    )
    _check(
      self.initial_priority in ('largest', 'one'),
      f'initial_priority={self.initial_priority!r} is unknown: choose '
      "'largest' or 'one'.",
    )
    _check(
      self.codec in ('blocks', 'tensors'),
      f"codec={self.codec!r} is unknown: choose 'blocks' or 'tensors'.",
    )
    _check(
      self.samples_per_insert > 0,
      f'samples_per_insert={self.samples_per_insert} must be positive.',
    )
    for name in ('priority_exponent', 'max_priority_weight'):
      _check(
        0 <= getattr(self, name) <= 1,
        f'{name}={getattr(self, name)} must lie in [0, 1].',
      )
    check_finite(self)

  @property
  def sequence_length(self) -> int:
    """Transitions of one sequence, T."""
    return self.burn_in_length + self.trace_length

  @property
  def blocks_per_sequence(self) -> int:
    """Blocks of one period that make up one sequence."""
    return self.sequence_length // self.sequence_period


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
  """One learner step.

  Attributes:
    loss: `q_lambda` (Peng's, in transfer) or `retrace` (in pre-training).
    trace_decay: lambda of either.
    discount: gamma.
    value_rescaling_epsilon: of the signed hyperbolic h; 0 turns h off. The
      paper does not say whether Q(lambda)'s values are rescaled; R2D2's are.
    target_policy_epsilon: of Retrace's target policy (NGU's 0.01).
    batch_size: sequences a learner step.
    learning_rate: of Adam.
    adam_epsilon: of Adam.
    max_gradient_norm: clips the global norm. The paper does not say; NGU's 40.
    target_update_period: learner steps between copies to the target network.
    importance_sampling_exponent: 0 is no correction. R2D2's text leaves it out
      and its table prints 0.6; Campos et al. have 0.
    publish_period: learner steps between two copies of the parameters that
      actors can fetch.
    num_devices: of the learner's accelerators, over which it splits each batch;
      0 for all that it has. The update is the same.
    double_q: whether the online network chooses the action that Q(lambda) takes
      the target network's value of, as R2D2 does. The paper names Q(lambda)
      alone.
    behavior_labels: which action a transition teaches that a behavior took
      where the extra action exists: `both`, the extra action and the primitive
      one (a duplicate), `extra` or `primitive` alone. The paper's actor
      overwrites the extra action by the primitive before it stores it, its
      learner duplicates and relabels: only with both stored can it do so.
    duplicate_flights: whether steps of a flight count as "transitions collected
      with pi_p" too, where the extra action exists; if not, they teach their
      primitive action alone. The paper's wording leaves it open; read
      literally, they do.
  """

  loss: str = 'q_lambda'
  trace_decay: float = 0.7
  discount: float = 0.99
  value_rescaling_epsilon: float = 1e-3
  target_policy_epsilon: float = 0.01
  batch_size: int = 64
  learning_rate: float = 2e-4
  adam_epsilon: float = 1e-4
  max_gradient_norm: float = 40.0
  target_update_period: int = 1500
  importance_sampling_exponent: float = 0.0
  publish_period: int = 10
  num_devices: int = 1
  double_q: bool = True
  behavior_labels: str = 'both'
  duplicate_flights: bool = True

  def __post_init__(self) -> None:
    _check(
      self.loss in ('q_lambda', 'retrace'),
      f"loss={self.loss!r} is unknown: choose 'q_lambda' or 'retrace'.",
    )
    _check(
      self.behavior_labels in ('both', 'extra', 'primitive'),
      f'behavior_labels={self.behavior_labels!r} is unknown: choose '
      "'both', 'extra' or 'primitive'.",
    )
    for name in ('trace_decay', 'discount', 'target_policy_epsilon'):
      _check(
        0 <= getattr(self, name) <= 1,
        f'{name}={getattr(self, name)} must lie in [0, 1].',
      )
    for name in (
      'batch_size',
      'learning_rate',
      'adam_epsilon',
      'max_gradient_norm',
      'target_update_period',
      'publish_period',
    ):
      _check(
        getattr(self, name) > 0,
        f'{name}={getattr(self, name)} must be positive.',
      )
    for name in (
      'value_rescaling_epsilon',
      'importance_sampling_exponent',
      'num_devices',
    ):
      _check(
        getattr(self, name) >= 0,
        f'{name}={getattr(self, name)} must not be negative.',
      )
    _check(
      not self.num_devices or self.batch_size % self.num_devices == 0,
      f'batch_size={self.batch_size} cannot be split evenly over '
      f'{self.num_devices} devices: choose a multiple of them, or other '
      'num_devices.',
    )
    check_finite(self)


@dataclasses.dataclass(frozen=True)
class ActingConfig:
  """Acting and evaluating.

  Attributes:
    epsilon_base: epsilon of environment i of N is base^(1 + alpha i / (N - 1)),
      fixed for the whole run (Ape-X).
    epsilon_alpha: alpha of the same.
    evaluation_epsilon: the evaluators'. The paper does not say; NGU's 0.01.
    variable_update_period: steps of each environment between two fetches of
      parameters.
    bootstrap_truncations: whether values go on behind an episode that the time
      limit cut. The paper does not say; the limit is no part of the task.
  """

  epsilon_base: float = 0.4
  epsilon_alpha: float = 7.0
  evaluation_epsilon: float = 0.01
  variable_update_period: int = 400
  bootstrap_truncations: bool = True

  def __post_init__(self) -> None:
    for name in ('epsilon_base', 'evaluation_epsilon'):
      _check(
        0 <= getattr(self, name) <= 1,
        f'{name}={getattr(self, name)} must lie in [0, 1].',
      )
    _check(
      self.epsilon_alpha >= 0,
      f'epsilon_alpha={self.epsilon_alpha} must not be negative.',
    )
    _check(
      self.variable_update_period > 0,
      f'variable_update_period={self.variable_update_period} must be positive.',
    )
    check_finite(self)


@dataclasses.dataclass(frozen=True)
class IntrinsicConfig:
  """The intrinsic reward and the networks behind it (NGU, RND).

  Attributes:
    intrinsic_reward: `ngu`, `rnd` or `constant`.
    embedding_size: of the inverse-dynamics embedding f, D.
    inverse_dynamics_size: hidden units of its classifier.
    rnd_size: outputs of both RND networks. The paper does not say.
    memory_capacity: slots of the episodic memory, M.
    num_neighbors: k.
    min_neighbors: with fewer in the memory the novelty is 0. The papers do not
      say what fewer than k are worth; 1 uses as many as there are.
    kernel_epsilon: of the inverse kernel. NGU's table says 1e-4, its text 1e-3.
    cluster_distance: xi, subtracted from normalized squared distances.
    pseudo_count: c, added to the similarity.
    max_similarity: s_m; above it the episodic reward is 0.
    reward_scale_limit: L, the largest life-long modulator.
    reward_observation: `current` rewards an action with the novelty of x_t, on
      which it was taken, as the papers list the actor's steps; `next` with that
      of x_{t+1}, which it led to, as is usual; the papers do not discuss it.
      The network's previous-reward input is that of x_{t-1} either way: x_t's
      is not known when it acts on x_t.
    alpha_offset: 0 for alpha = (err - mu) / sigma as Campos et al. print it, 1
      for 1 + (err - mu) / sigma as NGU does.
    error_deviation: what errors are divided by, sigma_e, while they have hardly
      varied: `one` takes 1 as long as it is below a thousandth of their mean;
      `floor` takes 1 before two errors, and then what there is, at least 1e-4.
      The papers do not say. At a run's start observations are often all the
      same, and the first that differs has errors of many sigma with either; by
      `one` at most a thousand means, by `floor` without a bound.
    statistics_scope: over what the running statistics go by which the reward is
      normalized (d_m^2, mu_e, sigma_e), each environment's its own: `life` for
      all that it has seen, `episode` for the episode alone. The papers name
      running averages and no window.
    distance_decay: 0 keeps a cumulative mean of the neighbors' squared
      distances (d_m^2); above 0, an exponential one with this step size. The
      papers do not say.
    constant_reward: the reward of `constant`.
    intrinsic_learning_rate: of Adam for f and the RND predictor. Campos et al.
      print 2e-4 for the agent and nothing for these two; NGU's 5e-4.
    intrinsic_steps: last valid transitions of each sequence that train both.
    inverse_dynamics_l2: weight of the L2 penalty on f and its classifier.
  """

  intrinsic_reward: str = 'ngu'
  embedding_size: int = 32
  inverse_dynamics_size: int = 128
  rnd_size: int = 128
  memory_capacity: int = 30_000
  num_neighbors: int = 10
  min_neighbors: int = 1
  kernel_epsilon: float = 1e-4
  cluster_distance: float = 8e-3
  pseudo_count: float = 1e-3
  max_similarity: float = 8.0
  reward_scale_limit: float = 5.0
  reward_observation: str = 'current'
  alpha_offset: float = 0.0
  error_deviation: str = 'one'
  statistics_scope: str = 'life'
  distance_decay: float = 0.0
  constant_reward: float = 1.0
  intrinsic_learning_rate: float = 5e-4
  intrinsic_steps: int = 5
  inverse_dynamics_l2: float = 1e-5

  def __post_init__(self) -> None:
    _check(
      self.intrinsic_reward in ('ngu', 'rnd', 'constant'),
      f'intrinsic_reward={self.intrinsic_reward!r} is unknown: choose from '
      "'ngu', 'rnd', 'constant'.",
    )
    _check(
      self.reward_observation in ('current', 'next'),
      f'reward_observation={self.reward_observation!r} is unknown: choose '
      "'current' or 'next'.",
    )
    _check(
      self.error_deviation in ('one', 'floor'),
      f"error_deviation={self.error_deviation!r} is unknown: choose 'one' or "
      "'floor'.",
    )
    _check(
      self.statistics_scope in ('life', 'episode'),
      f'statistics_scope={self.statistics_scope!r} is unknown: choose '
      "'life' or 'episode'.",
    )
    for name in (
      'embedding_size',
      'inverse_dynamics_size',
      'rnd_size',
      'memory_capacity',
      'num_neighbors',
      'min_neighbors',
      'kernel_epsilon',
      'intrinsic_learning_rate',
      'intrinsic_steps',
      'max_similarity',
    ):
      _check(
        getattr(self, name) > 0,
        f'{name}={getattr(self, name)} must be positive.',
      )
    for name in (
      'pseudo_count',
      'cluster_distance',
      'inverse_dynamics_l2',
    ):
      _check(
        getattr(self, name) >= 0,
        f'{name}={getattr(self, name)} must not be negative.',
      )
    _check(
      self.min_neighbors <= self.num_neighbors,
      f'min_neighbors={self.min_neighbors} exceeds '
      f'num_neighbors={self.num_neighbors}: all novelty would be 0.',
    )
    _check(
      self.reward_scale_limit >= 1,
      f'reward_scale_limit={self.reward_scale_limit} must be at least 1.',
    )
    _check(
      self.alpha_offset in (0.0, 1.0),
      f'alpha_offset={self.alpha_offset} must be 0 or 1.',
    )
    _check(
      0 <= self.distance_decay <= 1,
      f'distance_decay={self.distance_decay} must lie in [0, 1].',
    )
    check_finite(self)


@dataclasses.dataclass(frozen=True)
class TransferConfig:
  """Behavior transfer: flights and the extra action.

  Attributes:
    flights: whether control is handed to a behavior for whole stretches.
    extra_action: whether the agent may choose a behavior for one step.
    flight_probability: that a step starts a flight: `log_uniform`, drawn for
      each episode, beside the environment's epsilon; or `epsilon`, the
      environment's own, in place of its random actions. The paper draws it for
      its agent; Dabney et al. start ez-greedy's flights by epsilon, and of its
      own ez-greedy baseline the paper does not say.
    min_flight_probability: lower end of the log-uniform. The paper prints 0,
      which has no logarithm.
    max_flight_probability: upper end.
    flight_exponent: mu of the zeta distribution of a flight's length.
    max_flight_length: lengths are clipped to it. The paper does not say whether
      there is a cap, without which the mean length is infinite; ez-greedy's.
    flight_recurrent_state: `advance` lets the Q-network's recurrent state take
      in a flight's steps; `hold` leaves it as it was in front of the flight,
      for actors and learner alike, and trains more slowly. The paper does not
      say: its actor runs either the behavior or R2D2, its learner unrolls
      whole sequences.
    behavior_epsilon: of an exported policy's epsilon-greedy actions. The paper
      draws them from "the policy", whose values it has: how greedily it does
      not say; the evaluators' 0.01.
    behavior_reward_input: `recompute` lets an exported policy compute its own
      intrinsic-reward input with frozen networks, as in pre-training; `zero`
      feeds zeros, which is cheaper. The paper trains the policy with that
      input and transfers a function of observations alone.
  """

  flights: bool = True
  extra_action: bool = True
  flight_probability: str = 'log_uniform'
  min_flight_probability: float = 1e-4
  max_flight_probability: float = 0.1
  flight_exponent: float = 2.0
  max_flight_length: int = 10_000
  flight_recurrent_state: str = 'advance'
  behavior_epsilon: float = 0.01
  behavior_reward_input: str = 'recompute'

  def __post_init__(self) -> None:
    _check(
      self.flights or self.extra_action,
      'flights=False and extra_action=False leave nothing to transfer: set one '
      'of them, or use the agent without behavior transfer (run_r2d2.py).',
    )
    _check(
      0 < self.min_flight_probability <= self.max_flight_probability <= 1,
      f'min_flight_probability={self.min_flight_probability} and '
      f'max_flight_probability={self.max_flight_probability} must satisfy '
      '0 < min <= max <= 1: flights=False turns flights off.',
    )
    _check(
      self.flight_probability in ('log_uniform', 'epsilon'),
      f'flight_probability={self.flight_probability!r} is unknown: choose '
      "'log_uniform' or 'epsilon'.",
    )
    _check(
      self.flight_exponent > 1,
      f'flight_exponent={self.flight_exponent} must exceed 1.',
    )
    _check(
      1 <= self.max_flight_length <= _LONGEST_FLIGHT,
      f'max_flight_length={self.max_flight_length} must lie in '
      f'[1, {_LONGEST_FLIGHT}].',
    )
    _check(
      self.flight_recurrent_state in ('advance', 'hold'),
      f'flight_recurrent_state={self.flight_recurrent_state!r} is unknown: '
      "choose 'advance' or 'hold'.",
    )
    _check(
      0 <= self.behavior_epsilon <= 1,
      f'behavior_epsilon={self.behavior_epsilon} must lie in [0, 1].',
    )
    _check(
      self.behavior_reward_input in ('recompute', 'zero'),
      f'behavior_reward_input={self.behavior_reward_input!r} is unknown: '
      "choose 'recompute' or 'zero'.",
    )
    check_finite(self)


@dataclasses.dataclass(frozen=True)
class R2D2Config:
  """The R2D2 agent that learns a task with Peng's Q(lambda)."""

  network: NetworkConfig = NetworkConfig()
  replay: ReplayConfig = ReplayConfig()
  learner: LearnerConfig = LearnerConfig()
  acting: ActingConfig = ActingConfig()


@dataclasses.dataclass(frozen=True)
class NGUConfig(R2D2Config):
  """Reward-free pre-training: R2D2 with Retrace on an intrinsic reward."""

  learner: LearnerConfig = LearnerConfig(loss='retrace', trace_decay=0.95)
  intrinsic: IntrinsicConfig = IntrinsicConfig()


@dataclasses.dataclass(frozen=True)
class BTConfig(R2D2Config):
  """R2D2 with behavior transfer."""

  transfer: TransferConfig = TransferConfig()


def to_dict(config: Any) -> Dict[str, Any]:
  """A configuration as nested plain values, for JSON."""
  return dataclasses.asdict(config)


def from_dict(cls: type, values: Mapping[str, Any]) -> Any:
  """The inverse of `to_dict`; raises ValueError on an unknown field."""
  fields = {field.name: field for field in dataclasses.fields(cls)}
  unknown = sorted(set(values) - set(fields))
  _check(not unknown, f'{cls.__name__} has no setting named {unknown}.')
  return cls(
    **{
      name: from_dict(type(fields[name].default), value)
      if dataclasses.is_dataclass(fields[name].default)
      else value
      for name, value in values.items()
    }
  )
