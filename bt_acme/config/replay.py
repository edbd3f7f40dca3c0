"""Settings of the replay: sequences, capacity, priorities and storage."""

import dataclasses

from bt_acme.config import checks


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
  """What the replay keeps, and when the learner may read it."""

  trace_length: int = checks.setting(
    160,
    'The learner trains on this many steps of each sequence. The paper has '
    '160.',
    above=0,
  )
  burn_in_length: int = checks.setting(
    0,
    'This many steps before the trained ones only warm up the LSTM. They are '
    'trained too where a sequence starts an episode, because the state is '
    'known there. The paper\'s "160 without burn-in" may mean that there is no '
    'burn-in, which is how it is read here, or that the 160 do not count it.',
    minimum=0,
  )
  sequence_period: int = checks.setting(
    80,
    'The number of steps from the start of one sequence to the start of the '
    'next. It must divide the length of a sequence. The paper says that '
    'sequences overlap, but not how far; 80 is from Agent57.',
    above=0,
  )
  max_replay_size: int = checks.setting(
    125_000,
    'The replay keeps this many sequences; the oldest leave first. The paper '
    'has 125,000.',
    above=0,
  )
  min_replay_size: int = checks.setting(
    6_250,
    'The learner may sample once this many sequences have been inserted. The '
    'paper does not say how many; 6250 is from NGU.',
    above=0,
  )
  samples_per_insert: float = checks.setting(
    0.4,
    'Each sequence is sampled this many times on average. The paper does not '
    'say how often; 0.4 replays an observation 0.8 times, as R2D2 reports.',
    above=0,
  )
  priority_exponent: float = checks.setting(
    0.9,
    'Sequences are sampled in proportion to their priority raised to this '
    'exponent, in [0, 1]. The paper has 0.9.',
    minimum=0,
    maximum=1,
  )
  max_priority_weight: float = checks.setting(
    0.9,
    'The largest TD error of a sequence has this weight in its priority, and '
    'the mean TD error has the rest. R2D2 has 0.9.',
    minimum=0,
    maximum=1,
  )
  initial_priority: str = checks.setting(
    'actor',
    'The priority with which a new sequence enters the replay: `actor` has the '
    "actor compute it from its own Q-values by the learner's formula, as in "
    "Ape-X and R2D2; `largest` is the largest priority of the learner's recent "
    'steps; `one` is 1. The paper does not say which. Under the layouts of '
    'dm-acme `largest` is 1 too, because their adders cannot ask the learner.',
    choices=('actor', 'largest', 'one'),
  )
  codec: str = checks.setting(
    'blocks',
    'How sequences are stored in a Reverb table: as compressed `blocks`, which '
    'only the learner of this package reads, or as plain `tensors`, which any '
    'Acme learner reads and which take many times the memory.',
    choices=('blocks', 'tensors'),
  )

  def __post_init__(self) -> None:
    checks.check(self)
    checks.require(
      self.sequence_length % self.sequence_period == 0,
      f'sequence_period={self.sequence_period} does not divide the length of a '
      f'sequence, burn_in_length + trace_length = {self.sequence_length}: '
      'overlapping sequences share blocks of one period. Choose a divisor.',
    )
    checks.require(
      self.min_replay_size <= self.max_replay_size,
      f'min_replay_size={self.min_replay_size} exceeds '
      f'max_replay_size={self.max_replay_size}: the learner would wait for '
      'ever. Lower min_replay_size or raise max_replay_size.',
    )

  @property
  def sequence_length(self) -> int:
    """The number of transitions in a sequence, T."""
    return self.burn_in_length + self.trace_length

  @property
  def blocks_per_sequence(self) -> int:
    """The number of blocks of one period that make up a sequence."""
    return self.sequence_length // self.sequence_period
