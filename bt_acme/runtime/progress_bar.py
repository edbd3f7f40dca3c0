"""The progress bar of a run in one process, in a terminal or a notebook."""

import importlib.util
from typing import Any, Mapping

# In a notebook without ipywidgets, tqdm.auto would warn, and then do the same.
if importlib.util.find_spec('ipywidgets') is None:
  from tqdm import tqdm
else:
  from tqdm.auto import tqdm

_SECONDS = 0.5  # From one state of the bar to the next.
# What is shown behind the bar, by the names of `progress.Progress.update`.
_SHOWN = (('episode_return', 'return'), ('evaluator_return', 'evaluated'))


class ProgressBar:
  """Shows steps, steps a second, the time left, and the newest returns."""

  def __init__(self, max_actor_steps: int):
    """Draws the bar at once, before the first step is taken."""
    self._bar = tqdm(
      total=max_actor_steps,
      unit=' steps',
      dynamic_ncols=True,
      mininterval=_SECONDS,
    )
    self._shown = ''
    self._has_begun = False

  def update(self, values: Mapping[str, Any]) -> None:
    """Takes the values that `progress.Progress.update` describes."""
    shown = ', '.join(
      f'{title} {values[name]:.2f}' for name, title in _SHOWN if name in values
    )
    if shown != self._shown:
      self._shown = shown
      self._bar.set_postfix_str(shown, refresh=False)
    steps = min(int(values['actor_steps']), self._bar.total)
    if not self._has_begun:
      # The steps of an earlier session took no time of this one.
      self._bar.initial = steps
      self._has_begun = True
    self._bar.update(steps - self._bar.n)

  def close(self) -> None:
    """Leaves the last state on the screen."""
    self._bar.refresh()
    self._bar.close()


class NoDisplay:
  """Shows nothing."""

  def __init__(self, max_actor_steps: int):
    del max_actor_steps

  def update(self, values: Mapping[str, Any]) -> None:
    """Shows nothing."""

  def close(self) -> None:
    """Leaves nothing behind."""
