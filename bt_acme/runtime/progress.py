"""Shows the progress of a run: a bar with text, or lines of the same text.

A terminal or a notebook shows a bar; elsewhere a new line is printed every ten
seconds. A process of `bt_acme.runtime.supervisor` only marks its line, and the
supervisor prints the line, because it owns the terminal.
"""

import collections
import datetime
import importlib.util
import math
import os
import sys
import time
from collections.abc import Callable, Mapping

# Without ipywidgets, tqdm.auto would print a warning and then use plain tqdm.
if importlib.util.find_spec('ipywidgets') is None:
  from tqdm import tqdm
else:
  from tqdm.auto import tqdm

from bt_acme.runtime import output

# The prefix of each progress line that a process sends to the supervisor. The
# environment variable, `live` or `plain`, says how the supervisor shows it.
STATUS_MARK = '\x1e'
STATUS_VARIABLE = 'BT_ACME_STATUS'
_STATUS_SECONDS = {'live': 1.0, 'plain': 10.0}  # Between two lines.
_BAR_SECONDS = 0.5  # Between two updates of the bar.
_RATE_SECONDS = 30.0  # Window over which speeds are averaged.
_COUNTS = ('actor_steps', 'learner_steps')  # Values that have a speed.


def _in_notebook() -> bool:
  """Returns whether this process is the kernel of a notebook."""
  # A program that starts kernels of its own also imports ipykernel.
  ipython = sys.modules.get('IPython')
  return ipython is not None and hasattr(ipython.get_ipython(), 'kernel')


class Progress:
  """Shows the progress of a run, no more often than it can be read."""

  def __init__(
    self, max_actor_steps: int, clock: Callable[[], float] = time.monotonic
  ):
    """Initializes the display, and draws the bar before the first step.

    Args:
      max_actor_steps: the budget of the run.
      clock: a function that returns seconds.
    """
    mode = os.environ.get(STATUS_VARIABLE)
    self._max_actor_steps = max_actor_steps
    self._stream = sys.stderr if mode is None else sys.stdout
    self._clock = clock
    self._mark = '' if mode is None else STATUS_MARK
    self._seconds = _STATUS_SECONDS[mode or 'plain']
    self._bar: tqdm | None = None
    has_terminal = self._stream is not None and self._stream.isatty()
    if mode is None and (has_terminal or _in_notebook()):
      self._seconds = _BAR_SECONDS
      self._bar = tqdm(
        total=max_actor_steps,
        bar_format='{bar} {desc}',
        dynamic_ncols=True,
        file=self._stream,
      )
    self._next_time = -math.inf
    self._values: Mapping[str, float] = {}
    # The times and counts of the recent updates.
    self._history = collections.deque[tuple[float, dict[str, float]]]()

  def update(self, values: Mapping[str, float]) -> None:
    """Shows the progress of the run, if the next update is due.

    Args:
      values: `actor_steps` and, as far as they are known, `learner_steps`,
        `replay_size` (sequences), `episode_return` (the mean of the actors'
        recent episodes) and `evaluator_return` (the latest mean).
    """
    self._values = values
    if self._clock() >= self._next_time:
      self._show()

  def close(self) -> None:
    """Shows the last state, which stays on the screen."""
    if self._values:
      self._show()
    if self._bar is not None:
      self._bar.close()
      output.show('', end='', file=self._stream)  # The terminal may be gone.

  def _show(self) -> None:
    now = self._clock()
    self._next_time = now + self._seconds
    text = progress_line(self._values, self._max_actor_steps, self._speeds(now))
    if self._bar is None:
      output.show(f'{self._mark}{text}', file=self._stream)
    else:
      steps = int(self._values.get('actor_steps', 0))
      self._bar.n = min(steps, self._max_actor_steps)
      self._bar.set_description_str(text)

  def _speeds(self, now: float) -> dict[str, float]:
    """Returns the increase of each count per second, as far as it is known."""
    counts = {name: self._values.get(name, 0.0) for name in _COUNTS}
    self._history.append((now, counts))
    while len(self._history) > 2 and now - self._history[1][0] > _RATE_SECONDS:
      self._history.popleft()
    then, before = self._history[0]
    if now <= then:
      return {}
    return {
      name: max(counts[name] - before[name], 0.0) / (now - then)
      for name in counts
    }


def progress_line(
  values: Mapping[str, float], max_actor_steps: int, speeds: Mapping[str, float]
) -> str:
  """Returns the text of the progress line.

  Args:
    values: see `Progress.update`.
    max_actor_steps: the budget of the run.
    speeds: the increase of `actor_steps` and `learner_steps` per second, as far
      as it is known.
  """
  actor_steps = int(values.get('actor_steps', 0))
  share = actor_steps / max_actor_steps
  state = f'actor steps {actor_steps:,} / {max_actor_steps:,} ({share:.0%})'
  if speeds.get('actor_steps'):
    steps_left = max(0, max_actor_steps - actor_steps)
    seconds = round(steps_left / speeds['actor_steps'])
    state += f', {datetime.timedelta(seconds=seconds)} left'
  parts = [state]
  if 'actor_steps' in speeds:
    parts.append(f'{speeds["actor_steps"]:,.0f} steps/s')
  if 'learner_steps' in speeds and 'learner_steps' in values:
    parts.append(f'{speeds["learner_steps"]:,.1f} learner steps/s')
  if 'replay_size' in values:
    parts.append(f'replay {int(values["replay_size"]):,}')
  for key, name in (('episode_return', 'return'), ('evaluator_return', 'eval')):
    if key in values:
      parts.append(f'{name} {float(values[key]):,.2f}')
  return ' | '.join(parts)
