"""Settings of the replay: sequences, capacity, priorities and storage."""

import dataclasses

from bt_acme.config import checks


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
  """The replay: its sequences, capacity, priorities and storage.

  Attributes:
    trace_length: Number of steps of each sequence on which the learner trains.
      The paper uses 160.
    burn_in_length: Number of steps before the trained ones that only warm up
      the LSTM. They are trained too if a sequence starts an episode, because
      the state is known there. The paper's "160 without burn-in" may mean that
      there is no burn-in, as interpreted here, or that the 160 steps do not
      include the burn-in.
    sequence_period: Number of steps from the start of one sequence to the start
      of the next. It must divide the length of a sequence. The paper says that
      sequences overlap, but not by how much; 80 follows Agent57.
    max_replay_size: Replay capacity in sequences; the oldest are evicted first.
      The paper uses 125,000.
    min_replay_size: Number of inserted sequences after which the learner may
      sample. The paper does not specify it; 6250 follows NGU.
    samples_per_insert: Average number of times that each sequence is sampled.
      The paper does not specify it; 0.4 replays an observation 0.8 times, as
      R2D2 reports.
    priority_exponent: Exponent to which priorities are raised, in [0, 1];
      sequences are sampled in proportion to the result. The paper uses 0.9.
    max_priority_weight: Weight of the largest TD error of a sequence in its
      priority; the mean TD error has the remaining weight. R2D2 uses 0.9.
    initial_priority: Priority of a new sequence: with `actor`, the actor
      computes it from its own Q-values with the learner's formula, as in Ape-X
      and R2D2; `largest` is the largest priority of the learner's recent steps;
      `one` is 1. The paper does not specify it. With the layouts of dm-acme,
      `largest` is 1 too, because their adders cannot query the learner.
    codec: Storage format of sequences in a Reverb table: compressed `blocks`,
      which only the learner of this package can read, or plain `tensors`, which
      any Acme learner can read and which take many times the memory.

  Example:
    ```python
    from bt_acme import config

    config.R2D2Config(replay=config.ReplayConfig(max_replay_size=50_000))
    ```
  """

  trace_length: int = checks.setting(160, above=0)
  burn_in_length: int = checks.setting(0, minimum=0)
  sequence_period: int = checks.setting(80, above=0)
  max_replay_size: int = checks.setting(125_000, above=0)
  min_replay_size: int = checks.setting(6_250, above=0)
  samples_per_insert: float = checks.setting(0.4, above=0)
  priority_exponent: float = checks.setting(0.9, minimum=0, maximum=1)
  max_priority_weight: float = checks.setting(0.9, minimum=0, maximum=1)
  initial_priority: str = checks.choice('actor', 'largest', 'one')
  codec: str = checks.choice('blocks', 'tensors')

  def __post_init__(self) -> None:
    checks.check(self)
    checks.require(
      self.sequence_length % self.sequence_period == 0,
      f'sequence_period={self.sequence_period} does not divide the length of a '
      f'sequence, burn_in_length + trace_length = {self.sequence_length}. '
      'Choose a divisor, because overlapping sequences share blocks of one '
      'period.',
    )
    checks.require_order(vars(self), 'min_replay_size', 'max_replay_size')

  @property
  def sequence_length(self) -> int:
    """The number of transitions in a sequence, T."""
    return self.burn_in_length + self.trace_length

  @property
  def blocks_per_sequence(self) -> int:
    """The number of blocks in a sequence; a block covers one period."""
    return self.sequence_length // self.sequence_period
