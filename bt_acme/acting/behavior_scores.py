"""Learned priorities of behaviors, shared by all actors of a run.

Each group of environments has a `GroupPriorities`, which computes the weights
with which flights draw behaviors, and scores the episodes that end. One
`ScoreStore` next to the learner collects the scores of all groups, and is part
of every checkpoint. The formulas are in
`core/behavior_transfer/behavior_choice.py`.
"""

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bt_acme import assembly
from bt_acme.acting import episode as episode_lib
from bt_acme.core.behavior_transfer import behavior_choice as priorities
from bt_acme.environments import saving

# A behavior that flew in an episode, and the scores of the episode by signal.
Scored = tuple[int, tuple[float, ...]]
# For each signal of `TransferConfig.priority_signals`, the scores by behavior.
Scores = tuple[priorities.Scores, ...]


def new_scores(agent: assembly.Agent) -> Scores:
  """Returns scores without episodes for the behaviors of an agent."""
  if agent.transfer is None:
    return ()
  return tuple(
    priorities.new_scores(len(agent.behaviors), agent.transfer.priority_window)
    for _ in agent.transfer.priority_signals
  )


def _add(scores: Scores, episodes: Sequence[Scored]) -> Scores:
  for behavior, by_signal in episodes:
    scores = tuple(
      priorities.update(one, behavior, score)
      for one, score in zip(scores, by_signal, strict=True)
    )
  return scores


class GroupPriorities:
  """Priorities for a group of environments, from its own and others' episodes.

  An episode counts for every behavior that flew in it. Episodes without flights
  do not count.
  """

  def __init__(self, agent: assembly.Agent, scores: Scores):
    """Initializes the priorities.

    Args:
      agent: an agent with `flight_priorities='learned'`.
      scores: the scores of earlier episodes, from `ScoreStore.exchange`.
    """
    assert agent.transfer is not None
    self._config = agent.transfer
    self._weights = np.array(agent.flight_weights)
    self._scores = scores
    self._new: list[Scored] = []  # Since the last `take`.

  @property
  def counts_observations(self) -> bool:
    """Whether a score is the number of distinct observations."""
    return 'novelty' in self._config.priority_signals

  def probabilities(self) -> np.ndarray:
    """Returns the current probability of each behavior, float64 [K]."""
    # The first signal that is not 0 for all behaviors, else the last one.
    known = (one for one in self._scores if one.values.any())
    scores = next(known, self._scores[-1])
    return priorities.probabilities(
      scores,
      self._weights,
      temperature=self._config.priority_temperature,
      floor=self._config.priority_floor,
    )

  def row(self) -> dict[str, float]:
    """Returns the current probabilities as columns of a log."""
    return {
      f'flight_priority_{k}': float(probability)
      for k, probability in enumerate(self.probabilities())
    }

  def add(self, episode: episode_lib.EpisodeMetrics) -> None:
    """Counts a finished episode, unless a score is not finite."""
    scores = tuple(
      float(episode.scores[signal]) for signal in self._config.priority_signals
    )
    if all(map(math.isfinite, scores)):
      episodes = [(behavior, scores) for behavior in episode.flown]
      self._scores = _add(self._scores, episodes)
      self._new += episodes

  def take(self) -> list[Scored]:
    """Returns the episodes since the last call, for `ScoreStore.exchange`."""
    taken, self._new = self._new, []
    return taken

  def replace(self, scores: Scores) -> None:
    """Replaces the scores with those of all groups of environments."""
    self._scores = tuple(priorities.Scores(*one) for one in scores)

  def state(self) -> saving.State:
    """Returns the serializable state on which future draws depend."""
    return {
      'scores': [tuple(x.copy() for x in one) for one in self._scores],
      'new': list(self._new),
    }

  def restore(self, state: saving.State) -> None:
    """Restores a state returned by `state()`."""
    self.replace(state['scores'])
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
      episodes: the result of `GroupPriorities.take`.
    """
    with self._lock:
      self._scores = _add(self._scores, episodes)
      return self._scores

  def save(self) -> list[Mapping[str, Any]]:
    """Returns JSON-serializable values for a checkpoint."""
    return [
      {'values': one.values.tolist(), 'counts': one.counts.tolist()}
      for one in self._scores
      if one.counts.any()
    ]

  def restore(self, saved: Sequence[Mapping[str, Any]]) -> None:
    """Restores the values returned by `save`; an empty list changes nothing."""
    if saved:
      with self._lock:
        self._scores = tuple(
          priorities.Scores(
            np.array(one['values'], np.float64),
            np.array(one['counts'], np.int32),
          )
          for one in saved
        )
