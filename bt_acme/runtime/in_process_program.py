"""A run in one process, with all that a run of many processes leaves behind.

The workdir holds `config.json`, `logs/` of `actor`, `learner` and `evaluator`,
`checkpoints/`, `provenance.json`, copies of the `behaviors/` that are
transferred, after pre-training `behavior/`, and in the end `completed.json`.
Acme, Launchpad and Reverb are not needed.

A run that is stopped between two checkpoints goes on from the last one, and
writes again what it had written since. It ends as it would have without the
stop.
"""

import collections
import contextlib
import pathlib
import time
from typing import (
  Any,
  Callable,
  Deque,
  Dict,
  List,
  Mapping,
  NamedTuple,
  Optional,
  Protocol,
  Sequence,
)

import jax
import numpy as np

from bt_acme import (
  assembly,
  behaviors,
  compilation_cache,
  evaluation,
  learner_assembly,
  untrusted,
)
from bt_acme.config import run as run_config
from bt_acme.evaluation import logs as logs_lib
from bt_acme.replay import blocks
from bt_acme.runtime import (
  behavior_copies,
  evaluation_schedule,
  interrupts,
  metrics,
  provenance,
  requirements,
  snapshots,
  workdir,
)
from bt_acme.runtime.engines import in_process

Row = Dict[str, float]

_LABELS = ('actor', 'learner', 'evaluator')
_CHECKPOINT = 'run'
_RECENT = 100  # Episodes whose mean return is shown.


class Display(Protocol):
  """Shows how far a run is."""

  def update(self, values: Mapping[str, Any]) -> None:
    """Takes the values that `progress.Progress.update` describes.

    The first call tells where the run begins.
    """

  def close(self) -> None:
    """Leaves the last state on the screen."""


# Takes the values that a `Display` takes, after each turn; True ends the run.
Callback = Callable[[Mapping[str, Any]], Any]


class Ended(NamedTuple):
  """How a run ended.

  Attributes:
    result: what has come of it.
    evaluations: metrics of each evaluated episode, with `actor_steps`.
    interrupt: the signal that stopped it, if one did.
  """

  result: in_process.Result
  evaluations: List[Row]
  interrupt: Optional[interrupts.Interrupt]


# What `workdir.claim` records, because a run of many processes has other
# checkpoints.
ENGINE = {'engine': 'in_process'}


def run(
  config: run_config.RunConfig,
  agent: assembly.Agent,
  *,
  make_display: Callable[[int], Display],
  callbacks: Sequence[Callback] = (),
  initial_params: Any = None,
  identity: Optional[Mapping[str, Any]] = None,
) -> Ended:
  """Begins a run, or goes on with the one that is in the workdir.

  The first Ctrl-C stops it after the turn that is under way, and saves it.

  Args:
    config: where it runs, and for how long. Its `num_environments` are stepped
      at once.
    agent: R2D2, NGU or BT.
    make_display: takes the budget of actor steps.
    callbacks: are called after each turn; if one returns True, the run stops
      there, and is saved.
    initial_params: parameters of the Q-network to start from; None for fresh
      ones.
    identity: what else distinguishes this run from others in the same workdir.

  Returns:
    How it ended. If it was completed before, it takes no step.

  Raises:
    ValueError: before anything is computed, if the run could not do what it is
      meant to, or if the workdir holds another one.
  """
  requirements.check(config, agent)
  workdir.claim(config, agent.config, {**(identity or {}), **ENGINE})
  behavior_copies.keep(config, agent)
  compilation_cache.enable()
  # It is there while all that follows loads and compiles.
  display = make_display(config.max_actor_steps)
  with contextlib.ExitStack() as stack:
    stack.callback(display.close)
    if not workdir.is_completed(config):
      provenance.begin(config.workdir, (identity or {}).get(workdir.PARAMS, {}))
      provenance.note_device(config.workdir)
      stack.callback(provenance.end, config.workdir)
    noted = stack.enter_context(interrupts.noted())
    program = _Program(config, agent, initial_params, display, callbacks)
    stack.callback(program.close)
    program.run(lambda: noted() is not None)
    return Ended(program.result(), program.evaluations, noted())


def load(config: run_config.RunConfig, agent: assembly.Agent) -> Ended:
  """Returns the run that is in the workdir, as its last checkpoint has it.

  Raises:
    ValueError: if there is no checkpoint, or that of another run.
  """
  _check_size(config, agent)
  loaded = _make_run(config, agent)
  with contextlib.closing(loaded):
    loaded.load(_checkpoint(config))
    return Ended(loaded.result(), _evaluations(config), None)


def _check_size(config: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Refuses settings that ask for more memory than the checkpoint has bytes.

  A stranger may have written them, and making the run takes the memory. The
  file holds the parameters, and a block of replay for each environment.
  """
  path = _checkpoint(config)
  if not path.is_file():
    return
  state = learner_assembly.state_shapes(agent, workdir=config.workdir)
  layout = blocks.BlockLayout(agent.config.replay, agent.replay_shapes)
  needed = config.num_environments * layout.num_bytes + untrusted.num_bytes(
    jax.tree.leaves((state.params, state.intrinsic_params))
  )
  size = path.stat().st_size
  if needed > size:
    raise ValueError(
      f'workdir={config.workdir!r}: its settings ask for at least {needed:,} '
      f'bytes, and {path} has {size:,}: choose another workdir.'
    )


def _make_run(
  config: run_config.RunConfig,
  agent: assembly.Agent,
  initial_params: Any = None,
) -> in_process.InProcessRun:
  return in_process.InProcessRun(
    agent,
    num_environments=config.num_environments,
    seed=config.seed,
    initial_params=initial_params,
  )


def _checkpoint(config: run_config.RunConfig) -> pathlib.Path:
  return pathlib.Path(config.checkpoint_folder) / _CHECKPOINT


def _evaluations(config: run_config.RunConfig) -> List[Row]:
  """Reads what a run has evaluated, without what tells when."""
  marks = (*metrics.MARKS, *metrics.RENAMED_COLUMNS)
  return [
    {name: value for name, value in row.items() if name not in marks}
    for row in logs_lib.read_rows(config.workdir, 'evaluator')
  ]


class _Program:
  """The run, its logs, evaluations and checkpoints."""

  def __init__(
    self,
    config: run_config.RunConfig,
    agent: assembly.Agent,
    initial_params: Any,
    display: Display,
    callbacks: Sequence[Callback],
  ):
    self._config = config
    self._agent = agent
    self._display = display
    self._callbacks = callbacks
    self._run = _make_run(config, agent, initial_params)
    self._checkpoint = _checkpoint(config)
    if self._checkpoint.is_file():
      self._run.load(self._checkpoint)
    self._saved_steps = self._run.actor_steps
    self._saved_at = time.monotonic()
    self._ahead = snapshots.Snapshots(config, self._run.actor_steps)
    subsampler = metrics.Subsampler(
      config.max_episode_rows, config.max_actor_steps
    )
    self._logs = {
      label: metrics.make_logger(
        config.workdir,
        label,
        subsampler=subsampler if label == 'actor' else None,
        last_step=self._run.actor_steps,
      )
      for label in _LABELS
    }
    self._num_logged = len(self._run.learner_rows)
    self._returns: Deque[float] = collections.deque(maxlen=_RECENT)
    self._evaluator: Optional[evaluation.Evaluator] = None
    self._evaluator_return: Optional[float] = None
    self.evaluations = _evaluations(config)

  def run(self, should_stop: Callable[[], bool]) -> None:
    """Goes on to the end of the budget, or until it should stop."""
    run, budget = self._run, self._config.max_actor_steps
    while True:
      self._evaluate_if_due(should_stop)
      wants_stop = self._show()
      if run.actor_steps >= budget or should_stop() or wants_stop:
        break
      self._log(run.turn())
      self._ahead.export_due(run.actor_steps, self._export)
      if time.monotonic() - self._saved_at > self._config.checkpoint_period:
        self._save()
    if self._saved_steps != run.actor_steps:
      self._save()
    if run.actor_steps >= budget and not workdir.is_completed(self._config):
      self._complete()

  def result(self) -> in_process.Result:
    """Returns what has come of it."""
    return self._run.result()

  def close(self) -> None:
    """Closes environments and files."""
    self._run.close()
    if self._evaluator is not None:
      self._evaluator.close()
    for log in self._logs.values():
      log.close()

  def _counts(self) -> Row:
    return {
      'actor_steps': self._run.actor_steps,
      'learner_steps': self._run.learner_steps,
    }

  def _log(self, episodes: List[Row]) -> None:
    """Writes down what a turn brought."""
    counts = self._counts()
    for row in episodes:
      self._returns.append(row['episode_return'])
      self._logs['actor'].write({**counts, **row})
    rows = self._run.learner_rows
    for row in rows[self._num_logged :]:
      self._logs['learner'].write({**counts, **row})
    self._num_logged = len(rows)

  def _show(self) -> bool:
    """Shows how far it is; returns whether a callback wants it to stop."""
    values = {**self._counts(), 'replay_size': self._run.replay_size}
    if self._returns:
      values['episode_return'] = float(np.mean(self._returns))
    if self._evaluator_return is not None:
      values['evaluator_return'] = self._evaluator_return
    self._display.update(values)
    answers = [callback(values) for callback in self._callbacks]
    return any(answer is True for answer in answers)

  def _evaluate_if_due(self, should_stop: Callable[[], bool]) -> None:
    """Evaluates at step 0, at multiples of the period, and at the end."""
    points = evaluation_schedule.pending(
      self._config,
      last=evaluation_schedule.last_point(self.evaluations[-1:]),
      begin=-1,
      actor_steps=self._run.actor_steps,
    )
    if not self._config.num_evaluators or not points:
      return
    point = {evaluation_schedule.POINT: points[-1]}
    if self._evaluator is None:
      self._evaluator = evaluation.Evaluator(
        self._agent,
        episodes=self._config.evaluation_episodes,
        seed=self._config.seed,
        first_environment=evaluation.FIRST_ENVIRONMENT,
      )
    snapshot = self._run.snapshot()
    rows = self._evaluator.run(
      snapshot.variables, snapshot.statistics, should_stop=should_stop
    )
    for row in rows:
      self.evaluations.append({**self._counts(), **point, **row})
      self._logs['evaluator'].write(self.evaluations[-1])
    if rows:
      self._evaluator_return = float(
        np.mean([row['episode_return'] for row in rows])
      )

  def _save(self) -> None:
    self._run.save(self._checkpoint)
    self._saved_steps = self._run.actor_steps
    self._saved_at = time.monotonic()

  def _complete(self) -> None:
    """Exports a policy that was pre-trained, and marks the run."""
    if self._agent.intrinsic is not None:
      self._export(self._config.behavior_folder)
    workdir.mark_completed(self._config)

  def _export(self, folder: str) -> None:
    """Exports the policy as a behavior to a folder."""
    snapshot = self._run.snapshot()
    behaviors.export(
      folder,
      agent=self._agent,
      variables=snapshot.variables,
      statistics=snapshot.statistics,
      actor_steps=snapshot.actor_steps,
    )
