"""Many games of one Atari title, stepped in C++ by ale-py.

The pre-processing is that of `atari.Atari`, with two differences. An episode
begins with 0 to 30 no-op frames instead of 1 to 30. Where an episode ends
within a step, the maximum of its last observation includes frames of the
previous step.
"""

from typing import Dict, Sequence

import numpy as np
from ale_py import vector_env
from gymnasium.vector import AutoresetMode

from bt_acme.environments import vector

_NUM_ACTIONS = 18
_SIDE = 84  # Pixels of an observation's height and width.
# Among the recorded actions: a reset, and a step before a game's first reset.
_RESET, _BEFORE = 255, 254
# A game whose record has this many steps is seeded again at its next episode,
# and recorded from there. That takes as long as about 100 steps.
_STEPS_BETWEEN_SEEDS = 20_000


class AtariVector:
  """N games of one title, emulated on threads of their own."""

  def __init__(
    self,
    game: str,
    seeds: Sequence[int],
    *,
    stack: int = 4,
    max_noops: int = 30,
    max_frames: int = 108_000,
    num_threads: int = 1,
  ):
    """Starts the emulators.

    Args:
      game: one of `atari.ATARI_57`.
      seeds: one seed for each game.
      stack: the number of frames in an observation, the newest last.
      max_noops: the largest number of no-op frames that an episode draws; the
        smallest is 0.
      max_frames: the number of frames after which an episode is cut off.
      num_threads: the number of threads that emulate.
    """
    self._seeds = np.array([seed % 2**31 for seed in seeds], np.int32)
    self._games = vector_env.AtariVectorEnv(
      game,
      len(seeds),
      num_threads=num_threads,
      stack_num=stack,
      # ale-py draws at most one less than this.
      noop_max=max_noops + 1 if max_noops else 0,
      max_num_frames_per_episode=max_frames,
      full_action_space=True,
      reward_clipping=False,
      use_fire_reset=False,
      # These are ale-py's defaults today. `atari.Atari` does the same.
      repeat_action_probability=0.0,
      frameskip=4,
      maxpool=True,
      grayscale=True,
      img_height=_SIDE,
      img_width=_SIDE,
      episodic_life=False,
      autoreset_mode=AutoresetMode.NEXT_STEP,
    )
    self._was_last = np.zeros(len(seeds), bool)
    # The actions of each game since it was seeded, a byte for each, because
    # ale-py cannot copy these games.
    self._records = [bytearray() for _ in seeds]

  def __len__(self) -> int:
    return len(self._seeds)

  def reset(self) -> vector.VectorStep:
    """Starts an episode in every game."""
    seeds = None if self._has_started else self._seeds
    observation, _ = self._games.reset(seed=seeds)
    num = len(self)
    for record in self._records:
      record.append(_RESET)
    self._was_last = np.zeros(num, bool)
    return vector.VectorStep(
      observation=np.moveaxis(observation, 1, -1),
      reward=np.zeros(num, np.float32),
      discount=np.ones(num, np.float32),
      is_first=np.ones(num, bool),
      is_last=np.zeros(num, bool),
    )

  def step(self, actions: np.ndarray) -> vector.VectorStep:
    """Takes one action, int [N], in each game."""
    self.send(actions)
    return self.recv()

  def send(self, actions: np.ndarray) -> None:
    """Begins a step.

    Raises:
      ValueError: if an action is out of range.
    """
    actions = np.asarray(actions, np.int32)
    if actions.min() < 0 or actions.max() >= _NUM_ACTIONS:
      raise ValueError(
        f'actions {actions} are out of range: there are {_NUM_ACTIONS}, from 0.'
      )
    self._games.send(actions)
    for record, action in zip(self._records, actions, strict=True):
      record.append(action)

  def recv(self) -> vector.VectorStep:
    """Waits for the end of the step, and returns it."""
    observation, reward, terminated, truncated, _ = self._games.recv()
    is_first, self._was_last = self._was_last, terminated | truncated
    is_due = is_first & [len(r) > _STEPS_BETWEEN_SEEDS for r in self._records]
    if is_due.any():
      self._seed_again(is_due)
      observation = self._reset_some(is_due, self._seeds)
    return vector.VectorStep(
      observation=np.moveaxis(observation, 1, -1),
      reward=np.where(is_first, 0, reward).astype(np.float32),
      discount=np.where(terminated, 0, 1).astype(np.float32),
      is_first=is_first,
      is_last=self._was_last,
    )

  def state(self) -> Dict[str, np.ndarray]:
    """Returns each game's latest seed, and all actions since, uint8 [steps, N].

    A game that was seeded later than others has no actions in earlier rows.
    """
    num_steps = max(map(len, self._records))
    records = [
      record.rjust(num_steps, bytes([_BEFORE])) for record in self._records
    ]
    actions = np.frombuffer(b''.join(records), np.uint8)
    return {
      'seeds': self._seeds.copy(),
      'actions': actions.reshape(len(self), num_steps).T.copy(),
    }

  def restore(self, state: Dict[str, np.ndarray]) -> None:
    """Restores a state by playing again the actions since the latest seeds.

    These are at most 20,000 steps and an episode for each game, unless the
    state is from version 0.1.0, which has all actions since the first reset.

    Args:
      state: the state of as many games of the same title.

    Raises:
      RuntimeError: if an episode has been started here already.
    """
    if self._has_started:
      raise RuntimeError('games can be restored only before their first reset.')
    self._seeds = state['seeds'].copy()
    # Before its own first reset, a game may do anything.
    self._games.reset(seed=self._seeds)
    is_seeded = state['actions'][:1].ravel() == _RESET
    for row in state['actions'][1:]:
      self._play_again(row, is_seeded)
      is_seeded |= row == _RESET
    for record, actions in zip(self._records, state['actions'].T, strict=True):
      record += actions[actions != _BEFORE].tobytes()

  @property
  def _has_started(self) -> bool:
    return bool(self._records[0])

  def _seed_again(self, is_due: np.ndarray) -> None:
    """Draws the next seed of some games, and begins their records there."""
    for i in np.flatnonzero(is_due):
      sequence = np.random.SeedSequence(int(self._seeds[i]))
      self._seeds[i] = sequence.generate_state(1)[0] % 2**31
      self._records[i] = bytearray([_RESET])

  def _reset_some(self, which: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Starts an episode in some games; returns all observations."""
    observation, _ = self._games.reset(
      seed=seeds[which], options={'reset_mask': which}
    )
    return observation

  def _play_again(self, row: np.ndarray, is_seeded: np.ndarray) -> None:
    """Repeats what one row of a state records.

    Args:
      row: uint8 [N], an action, a reset or nothing yet for each game.
      is_seeded: bool [N], whether an earlier row had a game's first reset.
    """
    resets = row == _RESET
    if (row < _BEFORE).any():
      actions = np.where(row < _BEFORE, row, 0)
      *_, terminated, truncated, _ = self._games.step(actions.astype(np.int32))
      self._was_last = terminated | truncated
    if resets.any():
      self._reset_some(resets, np.where(is_seeded, -1, self._seeds))
      self._was_last = self._was_last & ~resets

  def close(self) -> None:
    """Ends the emulators."""
    self._games.close()
