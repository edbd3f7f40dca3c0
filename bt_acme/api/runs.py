"""What a run in one process returns."""

import dataclasses
import html
import pathlib
import shutil
import tempfile
import weakref
from typing import (
  Any,
  Callable,
  Dict,
  List,
  NamedTuple,
  Optional,
  Sequence,
  Union,
)

import numpy as np

from bt_acme import assembly, behaviors, files
from bt_acme.cli import recorded_agent
from bt_acme.cli import run as run_cli
from bt_acme.config import run as run_config
from bt_acme.evaluation import logs
from bt_acme.runtime import coordinator, metrics, progress
from bt_acme.runtime import learned as learned_lib
from bt_acme.runtime import workdir as workdir_lib
from bt_acme.runtime.engines import in_process

Columns = Dict[str, np.ndarray]
PathLike = Union[str, pathlib.Path]

_DISPLAYS: Dict[str, Callable[[int], coordinator.Display]] = {
  'auto': progress.Progress,
  'off': progress.NoDisplay,
}


class RunRequest(NamedTuple):
  """What is to be run.

  Attributes:
    agent: R2D2, NGU or BT.
    config: where it runs, and for how long; its workdir may be empty.
    initial_params: parameters of the Q-network to start from, or None.
    identity: what else distinguishes the run from others.
    progress: `auto` or `off`.
    callbacks: are called after each turn.
  """

  agent: assembly.Agent
  config: run_config.RunConfig
  initial_params: Any
  identity: Dict[str, Any]
  progress: str
  callbacks: Sequence[in_process.Callback] = ()


class Run:
  """A run, from its start to its end or to where it was stopped.

  Attributes:
    agent: R2D2, NGU or BT.
    workdir: the folder with its configuration, logs and checkpoint. A folder
      that nobody named is removed together with this object.
    actor_steps: the number of actor steps taken.
    max_actor_steps: its budget.
    variables: the parameters, as NumPy arrays.
    statistics: the statistics of the intrinsic reward; None without one.
    episodes: metrics of every finished episode of training, by name, each an
      array [episodes]: `episode_return`, `episode_length`, `actor_steps`, ...
    learner: metrics of every tenth learner step, by name, arrays [rows].
    evaluations: metrics of every evaluated episode, by name, arrays
      [episodes]; `actor_steps` tells when.
  """

  def __init__(self, request: RunRequest):
    """Initializes a run that was neither started nor loaded.

    Args:
      request: what to run.
    """
    if not request.config.workdir:
      temporary = tempfile.mkdtemp(prefix='bt_acme-')
      weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
      request = _in(request, temporary)
    self._request = request
    self._learned: learned_lib.Learned
    self._columns: Dict[str, Columns] = {}  # By the label of the log.

  @classmethod
  def start(cls, request: RunRequest) -> 'Run':
    """Runs what is requested, or resumes it.

    Args:
      request: what to run.
    """
    run = cls(request)
    run._execute()
    return run

  @classmethod
  def load(
    cls, folder: PathLike, given: Sequence[behaviors.Behavior] = ()
  ) -> 'Run':
    """Loads the run in a workdir; `bt_acme.load_run` describes it."""
    workdir = str(folder)
    identity = workdir_lib.read_identity(workdir)
    if identity.get('engine') != run_cli.ENGINE['engine']:
      raise ValueError(
        f'folder={workdir!r} holds a run of many processes: play it with '
        'launch/evaluate.py, or load the behavior that it exported.'
      )
    agent = recorded_agent.make(workdir, identity, given)
    config = dataclasses.replace(
      workdir_lib.run_of(workdir, identity), lp_launch_type='in_process'
    )
    extra = workdir_lib.extra(identity)
    run = cls(RunRequest(agent, config, None, extra, 'auto'))
    run._read()
    run._set_budget(run.actor_steps)
    return run

  def _execute(self) -> None:
    request = self._request
    run_cli.launch(
      request.config,
      request.agent,
      initial_params=request.initial_params,
      identity=request.identity,
      make_display=_DISPLAYS[request.progress],
      callbacks=request.callbacks,
    )
    self._read()

  def _read(self) -> None:
    """Reads what the run has learned; logs are read when they are asked for."""
    self._learned = learned_lib.read(self._request.config, self.agent)
    self._columns = {}

  def _set_budget(self, max_actor_steps: int) -> None:
    config = dataclasses.replace(
      self._request.config, max_actor_steps=max_actor_steps
    )
    self._request = self._request._replace(config=config)

  @property
  def agent(self) -> assembly.Agent:
    """See the class."""
    return self._request.agent

  @property
  def workdir(self) -> pathlib.Path:
    """See the class."""
    return pathlib.Path(self._request.config.workdir)

  @property
  def max_actor_steps(self) -> int:
    """See the class."""
    return self._request.config.max_actor_steps

  @property
  def actor_steps(self) -> int:
    """See the class."""
    return self._learned.actor_steps

  @property
  def variables(self) -> assembly.Variables:
    """See the class."""
    return self._learned.variables

  @property
  def statistics(self) -> Any:
    """See the class."""
    return self._learned.statistics

  @property
  def episodes(self) -> Columns:
    """See the class."""
    return self._log('actor')

  @property
  def learner(self) -> Columns:
    """See the class."""
    return self._log('learner')

  @property
  def evaluations(self) -> Columns:
    """See the class."""
    return self._log('evaluator')

  def _log(self, label: str) -> Columns:
    """Returns the columns of a log, which are read once."""
    if label not in self._columns:
      self._columns[label] = {
        name: column
        for name, column in logs.read_columns(str(self.workdir), label).items()
        if name not in (*metrics.MARKS, *metrics.RENAMED_COLUMNS)
      }
    return self._columns[label]

  def resume(
    self,
    max_actor_steps: Optional[int] = None,
    *,
    callbacks: Optional[Sequence[in_process.Callback]] = None,
  ) -> 'Run':
    """Goes on where the run has ended, or was stopped.

    Args:
      max_actor_steps: a new budget, counted from the beginning of the run; by
        default the old one.
      callbacks: others than before; see `bt_acme.pretrain`.

    Returns:
      This run.

    Raises:
      ValueError: for a budget that is smaller than the steps taken.
    """
    steps = self.max_actor_steps if max_actor_steps is None else max_actor_steps
    if steps < self.actor_steps:
      raise ValueError(
        f'max_actor_steps={steps} is less than the {self.actor_steps} steps '
        'that the run has taken: it counts from the beginning of the run.'
      )
    self._set_budget(steps)
    if callbacks is not None:
      self._request = self._request._replace(callbacks=callbacks)
    self._execute()
    return self

  def export(self, folder: PathLike) -> behaviors.Exported:
    """Writes the policy as a behavior, and returns it.

    Args:
      folder: the folder to write; one that is there is replaced.

    Raises:
      ValueError: for an agent that transfers behaviors itself.
    """
    if self.agent.transfer is not None:
      raise ValueError(
        'a run of `transfer` cannot be exported, because its policy calls '
        'other behaviors: export a run of `pretrain` or `train`.'
      )
    behaviors.export(
      str(folder),
      agent=self.agent,
      variables=self.variables,
      statistics=self.statistics,
      actor_steps=self.actor_steps,
    )
    return behaviors.Exported(str(folder), setting='folder')

  def save(self, folder: PathLike) -> None:
    """Copies the workdir, for `load_run`; a folder that is there is kept.

    Raises:
      ValueError: if the folder is there already.
    """
    if pathlib.Path(folder).exists():
      raise ValueError(
        f'folder={str(folder)!r} is there already: choose a new one.'
      )
    with files.new_folder(folder) as temporary:
      shutil.copytree(self.workdir, temporary, dirs_exist_ok=True)

  def __repr__(self) -> str:
    return f'<Run of {", ".join(": ".join(pair) for pair in self._summary())}>'

  def _repr_html_(self) -> str:
    rows = ''.join(
      f'<tr><th style="text-align: left">{html.escape(name)}</th>'
      f'<td style="text-align: left">{html.escape(value)}</td></tr>'
      for name, value in self._summary()
    )
    return f'<table>{rows}</table>'

  def _summary(self) -> List[Any]:
    """Returns what a reader wants to know first: names and texts."""
    steps, budget = self.actor_steps, self.max_actor_steps
    agent = type(self.agent.config).__name__.removesuffix('Config')
    stopped = ', stopped' if steps < budget else ''
    summary = [
      ('agent', agent),
      ('environment', self.agent.spec.name),
      ('actor steps', f'{steps:,} of {budget:,}{stopped}'),
    ]
    for title, columns in (
      ('return in training', self.episodes),
      ('return of evaluation', self.evaluations),
    ):
      returns = columns.get('episode_return', np.array(()))
      if title == 'return of evaluation' and returns.size:
        returns = returns[columns['actor_steps'] == columns['actor_steps'][-1]]
      if returns.size:
        last = returns[-_SHOWN_EPISODES:]
        summary.append((title, f'{last.mean():.3f} ({last.size} episodes)'))
    return [*summary, ('workdir', str(self.workdir))]


_SHOWN_EPISODES = 100  # The newest ones, whose mean return is shown.


def _in(request: RunRequest, workdir: str) -> RunRequest:
  return request._replace(
    config=dataclasses.replace(request.config, workdir=workdir)
  )
