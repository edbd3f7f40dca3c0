"""Many games of one Atari title, stepped in C++ by ale-py.

The pre-processing is that of `atari.Atari`, with two differences. An episode
begins with 0 to 30 no-op frames instead of 1 to 30. Where an episode ends
within a step, the maximum of its last observation includes frames of the
previous step.
"""

from typing import Any, Dict, Sequence

import numpy as np
from ale_py import vector_env

from bt_acme.environments import vector

_NUM_ACTIONS = 18
_RESET = 255  # What stands for a reset among the recorded actions.


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
    )
    self._was_last = np.zeros(len(seeds), bool)
    # All actions so far, a byte for each, because ale-py cannot copy games.
    self._actions = bytearray()

  def __len__(self) -> int:
    return len(self._seeds)

  def reset(self) -> vector.VectorStep:
    """Starts an episode in every game."""
    seeds = None if self._actions else self._seeds
    observation, _ = self._games.reset(seed=seeds)
    num = len(self)
    self._actions += bytes([_RESET] * num)
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
    self._actions += actions.astype(np.uint8).tobytes()

  def recv(self) -> vector.VectorStep:
    """Waits for the end of the step, and returns it."""
    observation, reward, terminated, truncated, _ = self._games.recv()
    is_first, self._was_last = self._was_last, terminated | truncated
    return vector.VectorStep(
      observation=np.moveaxis(observation, 1, -1),
      reward=np.where(is_first, 0, reward).astype(np.float32),
      discount=np.where(terminated, 0, 1).astype(np.float32),
      is_first=is_first,
      is_last=self._was_last,
    )

  def state(self) -> Dict[str, Any]:
    """Returns the seeds and all actions so far, uint8 [steps, N]."""
    actions = np.frombuffer(bytes(self._actions), np.uint8)
    return {'seeds': self._seeds, 'actions': actions.reshape(-1, len(self))}

  def restore(self, state: Dict[str, Any]) -> None:
    """Goes on from a state, by playing everything again up to there.

    ale-py's games in C++ cannot be copied. This takes as long as emulating did.

    Args:
      state: the state of as many games of the same title.

    Raises:
      RuntimeError: if an episode has been started here already.
    """
    if self._actions:
      raise RuntimeError('games can be restored only before their first reset.')
    self._seeds = state['seeds']
    for actions in state['actions']:
      if actions[0] == _RESET:
        self.reset()
      else:
        self.step(actions)

  def close(self) -> None:
    """Ends the emulators."""
    self._games.close()
