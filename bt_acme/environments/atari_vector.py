"""Several instances of one Atari game, stepped in C++ by ale-py.

The preprocessing is that of `atari.Atari`, with two differences. An episode
starts with 0 to 30 no-op frames instead of 1 to 30. If an episode ends within a
step, the maximum in its last observation includes frames of the previous step.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from ale_py import vector_env
from gymnasium.vector import AutoresetMode

from bt_acme.environments import vector

_NUM_ACTIONS = 18
# Markers in the records: a reset, and a step before the first recorded reset.
_RESET, _BEFORE = 255, 254
# A game with this many recorded steps gets a new seed at its next episode, and
# its record restarts. Seeding takes as long as about 200 steps.
_STEPS_BETWEEN_SEEDS = 20_000


class AtariVector(vector.VectorEnvironment):
  """N instances of one game, emulated in a separate thread."""

  def __init__(
    self,
    game: str,
    seeds: Sequence[int],
    *,
    pixels: int = 84,
    stack: int = 4,
    max_noops: int = 30,
    max_frames: int = 108_000,
  ):
    """Initializes the emulators.

    Args:
      game: one of `atari.ATARI_57` except Skiing, of which ale-py's vectors
        have only nine actions.
      seeds: one seed per instance.
      pixels: the height and width of an observation.
      stack: the number of frames in an observation, the newest last.
      max_noops: the maximum number of no-op frames at the start of an episode;
        the minimum is 0.
      max_frames: the number of frames after which an episode is truncated.
    """
    self._seeds = np.array([seed % 2**31 for seed in seeds], np.int32)
    self._games = vector_env.AtariVectorEnv(
      game,
      len(seeds),
      num_threads=1,
      stack_num=stack,
      # ale-py draws a number below `noop_max`.
      noop_max=max_noops + 1 if max_noops else 0,
      max_num_frames_per_episode=max_frames,
      full_action_space=True,
      reward_clipping=False,
      use_fire_reset=False,
      # These are the current defaults of ale-py, and match `atari.Atari`.
      repeat_action_probability=0.0,
      frameskip=4,
      maxpool=True,
      grayscale=True,
      img_height=pixels,
      img_width=pixels,
      episodic_life=False,
      autoreset_mode=AutoresetMode.NEXT_STEP,
    )
    self._was_last = np.zeros(len(seeds), bool)
    # The actions of each game since its last seeding, one byte each. ale-py
    # cannot copy the state of these games.
    self._records = [bytearray() for _ in seeds]

  def __len__(self) -> int:
    return len(self._seeds)

  def reset(self) -> vector.VectorStep:
    """Starts an episode in every game."""
    seeds = None if self._records[0] else self._seeds  # At the first reset.
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

  def send(self, actions: Any) -> None:
    """Starts a step.

    Raises:
      ValueError: if an action is out of range.
    """
    actions = np.asarray(actions, np.int32)
    if actions.min() < 0 or actions.max() >= _NUM_ACTIONS:
      raise ValueError(
        f'actions={actions} are out of range. Choose actions from 0 to '
        f'{_NUM_ACTIONS - 1}.'
      )
    self._games.send(actions)
    for record, action in zip(self._records, actions, strict=True):
      record.append(action)

  def recv(self) -> vector.VectorStep:
    """Waits for the step to finish, and returns its results."""
    observation, reward, terminated, truncated, _ = self._games.recv()
    is_first, self._was_last = self._was_last, terminated | truncated
    needs_seed = is_first & [
      len(r) > _STEPS_BETWEEN_SEEDS for r in self._records
    ]
    if needs_seed.any():
      for i in np.flatnonzero(needs_seed):
        sequence = np.random.SeedSequence(int(self._seeds[i]))
        self._seeds[i] = sequence.generate_state(1)[0] % 2**31
        self._records[i] = bytearray([_RESET])
      observation = self._reset_some(needs_seed, self._seeds)
    return vector.VectorStep(
      observation=np.moveaxis(observation, 1, -1),
      reward=np.where(is_first, 0, reward).astype(np.float32),
      discount=np.where(terminated, 0, 1).astype(np.float32),
      is_first=is_first,
      is_last=self._was_last,
    )

  def state(self) -> dict[str, np.ndarray]:
    """Returns the latest seed of each game and the actions since then.

    Returns:
      `seeds`, and `actions`, uint8 [steps, N]. Rows before the latest seeding
      of a game contain no action of that game.
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

  def restore(self, state: dict[str, np.ndarray]) -> None:
    """Restores a state by replaying the actions since the latest seeds.

    At most 20,000 steps plus one episode are replayed per game, except for a
    state of version 0.1.0, which contains all actions since the first reset.

    Args:
      state: the state of the same number of instances of the same game.
    """
    self._seeds = state['seeds'].copy()
    # The actions of a game before its own first reset are arbitrary.
    self._games.reset(seed=self._seeds)
    is_seeded = state['actions'][:1].ravel() == _RESET
    for row in state['actions'][1:]:
      self._play_again(row, is_seeded)
      is_seeded |= row == _RESET
    self._records = [
      bytearray(actions[actions != _BEFORE]) for actions in state['actions'].T
    ]

  def _reset_some(self, which: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Starts an episode in some games; returns all observations."""
    observation, _ = self._games.reset(
      seed=seeds[which], options={'reset_mask': which}
    )
    return observation

  def _play_again(self, row: np.ndarray, is_seeded: np.ndarray) -> None:
    """Replays one row of the actions in a state.

    Args:
      row: for each game an action, `_RESET` or `_BEFORE`, uint8 [N].
      is_seeded: whether an earlier row had the game's first reset, bool [N].
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
    """Closes the emulators."""
    self._games.close()
