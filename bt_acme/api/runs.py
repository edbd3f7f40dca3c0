"""Runs: results, resuming, saving and exporting."""

import dataclasses
import functools
import pathlib
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bt_acme import assembly, behaviors, environments, files
from bt_acme.config import checks
from bt_acme.config import run as run_config
from bt_acme.evaluation import logs, tables
from bt_acme.launching import recorded_agent, starting
from bt_acme.runtime import coordinator, metrics_logger, provenance
from bt_acme.runtime import progress as progress_lib
from bt_acme.runtime import workdir as workdir_lib
from bt_acme.runtime.engines import in_process

Columns = dict[str, npt.NDArray[np.float64]]
PathLike = str | pathlib.Path
_SHOWN_EPISODES = 100  # Number of last episodes whose returns are averaged.

DISPLAYS: dict[str, coordinator.MakeDisplay] = {
  'auto': progress_lib.Progress,
  'off': lambda max_actor_steps: None,
}


class Run:
  """A finished or stopped run; a run in one process can be resumed.

  `pretrain`, `train`, `transfer` and `load_run` return runs. A notebook shows a
  run as a table.

  Attributes:
    agent: the agent: R2D2, NGU or BT with its configuration.
    workdir: the absolute path of the directory with the run's configuration,
      logs and checkpoint. A temporary one is deleted when this object is no
      longer in use.
    learned: the policy so far, which consists of the next three attributes.
    actor_steps: the number of actor steps taken so far.
    variables: the learned parameters, as NumPy arrays.
    statistics: the statistics of the intrinsic reward; None for an agent
      without one.
    exit_code: 0 if the run has ended, with its last evaluation, or was only
      loaded; 75 if a callback stopped it. Otherwise, the code of a launch
      script that was stopped in the same way.

  Example:
    ```python
    run = bt_acme.train('Chain-5', max_actor_steps=2_000)
    print(run.actor_steps, run.episodes['episode_return'].mean())
    ```
  """

  def __init__(
    self, agent: assembly.Agent, config: run_config.RunConfig, **options: Any
  ):
    """Initializes a run that has been neither started nor loaded.

    Args:
      agent: R2D2, NGU or BT.
      config: the settings of the run; an empty workdir stands for a temporary
        directory.
      **options: the other arguments of `launching.starting.start`, with which
        `resume` starts the run, too.
    """
    workdir = config.workdir or tempfile.mkdtemp(prefix='bt_acme-')
    if not config.workdir:
      weakref.finalize(self, shutil.rmtree, workdir, ignore_errors=True)
    self.agent = agent
    self.workdir = pathlib.Path(workdir).absolute()
    self.exit_code = 0
    self._config = dataclasses.replace(config, workdir=str(self.workdir))
    self._options = options

  def _read(self) -> None:
    """Reads the learned parameters; logs are read on first access."""
    self.learned = recorded_agent.read_policy(self._config, self.agent)
    self.actor_steps, self.variables, self.statistics = self.learned
    for log in ('episodes', 'learner', 'evaluations'):
      vars(self).pop(log, None)

  @property
  def max_actor_steps(self) -> int:
    """Budget in actor steps, of the last session if the run was loaded."""
    return self._config.max_actor_steps

  @functools.cached_property
  def episodes(self) -> Columns:
    """Metrics of every finished training episode: arrays [episodes] by name.

    Among them are `episode_return`, `episode_length` and `actor_steps`.
    """
    return self._log('actor')

  @functools.cached_property
  def learner(self) -> Columns:
    """Metrics of learner steps: arrays [rows] by name.

    One row for every tenth step, or per second in runs of several processes.
    """
    return self._log('learner')

  @functools.cached_property
  def evaluations(self) -> Columns:
    """Metrics of every evaluation episode: arrays [episodes] by name.

    `actor_steps` is the number of training steps before the evaluation.
    """
    return self._log('evaluator')

  def by_environment(self, columns: Columns) -> dict[str, Columns]:
    """Splits the rows of a run that plays several environments.

    Args:
      columns: `episodes` or `evaluations` of this run.

    Returns:
      The rows of each environment, by its name, in the order of the run.

    Raises:
      ValueError: for the columns of `learner`.

    Example:
      ```python
      for name, episodes in run.by_environment(run.episodes).items():
        print(name, episodes['episode_return'].mean())
      ```
    """
    listed = self.agent.spec.name
    names = environments.names_in(listed)
    if not columns:  # Nothing has been logged.
      return {name: {} for name in names}
    if 'environment' not in columns:
      raise ValueError(
        "columns lacks the column 'environment'. Pass episodes or evaluations."
      )
    indices = columns['environment'].astype(int)
    used, rows = np.unique(indices, return_inverse=True)
    played = np.array([environments.name_of(listed, i) for i in used], str)
    return {
      name: {k: column[(played == name)[rows]] for k, column in columns.items()}
      for name in names
    }

  def _log(self, label: str) -> Columns:
    columns = logs.read_columns(str(self.workdir), label)
    return {k: v for k, v in columns.items() if k not in metrics_logger.MARKS}

  def resume(
    self,
    max_actor_steps: int | None = None,
    *,
    callbacks: Sequence[in_process.Callback] | None = None,
    progress: str | None = None,
  ) -> 'Run':
    """Resumes a run that finished or was stopped; signals act as in `pretrain`.

    Args:
      max_actor_steps: the new budget, counted from the start of the run; None
        for the current budget, with which a finished run stays as it is.
      callbacks: replacements for the current callbacks (see
        `bt_acme.pretrain`); None to keep them.
      progress: `auto` to show a progress bar, `off` to show nothing; None to
        keep what the run shows, which is `auto` for a loaded run.

    Returns:
      This run.

    Raises:
      ValueError: if the budget is invalid, or smaller than the number of steps
        taken, if the workdir no longer contains the run, or for a run of
        several processes.

    Example:
      ```python
      # Takes about half a minute on two cores.
      run.resume(3_000)  # Takes 1,000 more steps.
      ```
    """
    self._check_in_process()
    checks.require(
      'learned' not in vars(self) or workdir_lib.contains_run(self.workdir),
      f'workdir={str(self.workdir)!r} no longer contains the run. Restore it, '
      'or start a new run.',
    )
    if progress is not None:
      checks.check_value('progress', progress, checks.choice(*DISPLAYS))
      self._options['make_display'] = DISPLAYS[progress]
    if max_actor_steps is not None:
      config = dataclasses.replace(
        self._config, max_actor_steps=max_actor_steps
      )
      starting.check_budget(config)
      self._config = config
    if callbacks is not None:
      self._options['callbacks'] = checks.functions('callbacks', callbacks)
    self.exit_code = starting.start(self._config, self.agent, **self._options)
    self._read()
    return self

  def export(self, folder: PathLike) -> behaviors.Exported:
    """Exports the policy as a behavior for `transfer` and `evaluate`.

    The behavior of a run of `transfer` takes the primitive action with the
    highest value, and no extra actions. It needs no other behavior.

    Args:
      folder: the directory to write. A behavior in it is replaced.

    Returns:
      The behavior.

    Raises:
      ValueError: if the directory contains anything but a behavior.

    Example:
      ```python
      behavior = run.export('runs/explorer')
      ```
    """
    return export_policy(self, folder)

  def save(self, folder: PathLike) -> None:
    """Saves a copy of the workdir, which `load_run` can load.

    Args:
      folder: the directory to create.

    Raises:
      ValueError: if the directory already exists or is in the workdir, or for
        a run of several processes.

    Example:
      ```python
      run.save('runs/chain')
      same_run = bt_acme.load_run('runs/chain')
      ```
    """
    self._check_in_process()
    target = checks.path('folder', folder).resolve()
    checks.require(
      not target.exists() and self.workdir.resolve() not in target.parents,
      f'folder={str(folder)!r} already exists or is in the workdir. Choose a '
      'new directory.',
    )
    with files.new_folder(folder) as temporary:
      shutil.copytree(self.workdir, temporary, dirs_exist_ok=True)

  def _check_in_process(self) -> None:
    checks.require(
      not self._config.uses_launchpad,
      f'workdir={str(self.workdir)!r} contains a run of several processes. '
      'Rerun its command to resume it; copy its workdir to save it.',
    )

  def __repr__(self) -> str:
    return f'<Run of {", ".join(": ".join(pair) for pair in self._summary())}>'

  def _repr_html_(self) -> str:
    return tables.html((), self._summary())

  def _summary(self) -> list[Any]:
    """Returns the most important facts, as pairs of a title and a text."""
    steps, budget = self.actor_steps, self.max_actor_steps
    agent = type(self.agent.config).__name__.removesuffix('Config')
    stopped = ', stopped' if steps < budget else ''
    summary = [
      ('agent', agent),
      ('environment', self.agent.spec.name),
      ('actor steps', f'{steps:,} of {budget:,}{stopped}'),
    ]
    for title, columns in (
      ('training return', self.episodes),
      ('evaluation return', self.evaluations),
    ):
      returns = columns.get('episode_return', np.array(()))
      if title == 'evaluation return' and returns.size:
        # With several evaluators, an earlier evaluation may end last.
        returns = returns[columns['actor_steps'] == max(columns['actor_steps'])]
      if returns.size:
        last = returns[-_SHOWN_EPISODES:]
        episodes = tables.counted(last.size, 'episode')
        summary.append((title, f'{last.mean():.3f} ({episodes})'))
    return [*summary, ('workdir', str(self.workdir))]


def export_policy(
  policy: Run | behaviors.Exported, folder: PathLike
) -> behaviors.Exported:
  """Exports the policy of a run or a behavior; see `Run.export`."""
  folder = str(checks.path('folder', folder))
  agent, variables = assembly.without_behaviors(policy.agent, policy.variables)
  behaviors.export(
    folder,
    agent=agent,
    variables=variables,
    statistics=policy.statistics,
    actor_steps=policy.actor_steps,
  )
  return behaviors.Exported(folder, setting='folder')


def load_run(
  folder: PathLike,
  behavior: behaviors.Behavior | Sequence[behaviors.Behavior] = (),
) -> Run:
  """Loads a run without resuming it; call `Run.resume` to do so.

  Args:
    folder: the workdir of a run, or a directory written by `Run.save`. It
      becomes the workdir of the loaded run. A run of several processes may be
      active: its newest checkpoint is loaded. Its own command resumes it.
    behavior: the behaviors that were passed to `transfer`. Only needed for
      behaviors of your own, because a run stores copies of exported ones.

  Returns:
    The run.

  Raises:
    ValueError: if the directory does not contain a run with a checkpoint, or if
      `behavior` differs from the behaviors of the run.

  Example:
    ```python
    # Takes about a minute on two cores.
    bt_acme.train('Chain-5', max_actor_steps=2_000, workdir='runs/chain')
    run = bt_acme.load_run('runs/chain')
    run.resume(run.actor_steps + 2_000)
    ```
  """
  given = behavior if isinstance(behavior, (list, tuple)) else (behavior,)
  workdir = str(folder)
  identity = workdir_lib.read_identity(workdir)
  agent = recorded_agent.make(workdir, identity, given)
  config = workdir_lib.run_of(workdir, identity)
  if identity.get('engine') == starting.ENGINE['engine']:
    config = dataclasses.replace(config, lp_launch_type='in_process')
  extra = workdir_lib.extra(identity)
  run = Run(agent, config, identity=extra, make_display=DISPLAYS['auto'])
  run._read()
  run._config = dataclasses.replace(
    run._config,
    **{'max_actor_steps': run.actor_steps, **provenance.last_settings(workdir)},
  )
  return run
