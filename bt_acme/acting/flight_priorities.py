"""Learned priorities of behaviors, shared by all actors of a run.

Each group of environments has a `FlightPriorities`, which computes the weights
with which flights draw behaviors, and scores the episodes that end. One
`ScoreStore` next to the learner collects the scores of all groups, and is part
of every checkpoint. The formulas are in `core/behavior_transfer/priorities.py`.
"""

import math
import threading
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from bt_acme import assembly
from bt_acme.acting import episode as episode_lib
from bt_acme.core.behavior_transfer import priorities
from bt_acme.environments import saving

# A behavior that flew in an episode, and the score of the episode.
Scored = Tuple[int, float]
Scores = priorities.Scores


def new_scores(agent: assembly.Agent) -> Scores:
  """Returns scores without episodes for the behaviors of an agent."""
  window = agent.transfer.priority_window if agent.transfer else 1
  return priorities.new_scores(len(agent.behaviors), window)


def _add(scores: Scores, episodes: Sequence[Scored]) -> Scores:
  for behavior, score in episodes:
    scores = priorities.update(scores, behavior, score)
  return scores


class FlightPriorities:
  """Priorities for a group of environments, from its own and others' episodes.

  An episode counts for every behavior that flew in it. Episodes without flights
  do not count.
  """

  def __init__(self, agent: assembly.Agent, scores: Scores):
    """Initializes the priorities.

    Args:
      agent: an agent with `flight_priorities='learned'`.
      scores: the scores of earlier episodes, as of `ScoreStore.exchange`.
    """
    assert agent.transfer is not None
    self._config = agent.transfer
    self._weights = np.array(agent.flight_weights)
    self._scores = scores
    self._new: List[Scored] = []  # Since the last `take`.

  def probabilities(self) -> np.ndarray:
    """Returns the current probability of each behavior, float64 [K]."""
    result: np.ndarray = priorities.probabilities(
      self._scores,
      self._weights,
      temperature=self._config.priority_temperature,
      floor=self._config.priority_floor,
    )
    return result

  def row(self) -> Dict[str, float]:
    """Returns the current probabilities as columns of a log."""
    return {
      f'flight_priority_{k}': float(probability)
      for k, probability in enumerate(self.probabilities())
    }

  def add(self, episode: episode_lib.EpisodeMetrics) -> None:
    """Counts a finished episode, unless its score is not finite."""
    score = float(episode.scores[self._config.priority_signal])
    if math.isfinite(score):
      episodes = [(behavior, score) for behavior in episode.flown]
      self._scores = _add(self._scores, episodes)
      self._new += episodes

  def take(self) -> List[Scored]:
    """Returns the episodes since the last call, for `ScoreStore.exchange`."""
    taken, self._new = self._new, []
    return taken

  def replace(self, scores: Scores) -> None:
    """Replaces the scores by those of all groups of environments."""
    self._scores = Scores(*scores)

  def state(self) -> saving.State:
    """Returns the serializable state on which future draws depend."""
    values, counts = self._scores
    return {
      'values': values.copy(),
      'counts': counts.copy(),
      'new': list(self._new),
    }

  def restore(self, state: saving.State) -> None:
    """Restores a state returned by `state()`."""
    self._scores = Scores(state['values'].copy(), state['counts'].copy())
    self._new = list(state['new'])


class ScoreStore:
  """Stores the scores of all episodes of a run; thread-safe."""

  def __init__(self, agent: assembly.Agent):
    """Initializes a store without episodes."""
    self._scores = new_scores(agent)
    self._lock = threading.Lock()

  def exchange(self, episodes: Sequence[Scored]) -> Scores:
    """Adds episodes, and returns the scores of all groups of environments.

    Args:
      episodes: the result of `FlightPriorities.take`.
    """
    with self._lock:
      self._scores = _add(self._scores, episodes)
      return self._scores

  def save(self) -> Optional[Mapping[str, Any]]:
    """Returns JSON-serializable values for a checkpoint; None if empty."""
    values, counts = self._scores
    if not counts.any():
      return None
    return {'values': values.tolist(), 'counts': counts.tolist()}

  def restore(self, saved: Optional[Mapping[str, Any]]) -> None:
    """Restores the values returned by `save`; None leaves the store unchanged.

    Raises:
      ValueError: if the shapes differ from those of this run.
    """
    if saved is None:
      return
    restored = Scores(
      np.array(saved['values'], np.float64), np.array(saved['counts'], np.int32)
    )
    shapes = [x.shape for x in self._scores]
    if [x.shape for x in restored] != shapes:
      raise ValueError(
        f'The saved scores of flights have shapes {[x.shape for x in restored]}'
        f' instead of {shapes}.'
      )
    with self._lock:
      self._scores = restored
