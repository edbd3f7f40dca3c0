"""Describes planned and finished runs for readers."""

import collections
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bt_acme.evaluation import tables
from experiments.harness import dataset, processes, records, runs
from experiments.paper import folders, scales

STAGES = {
  runs.PRETRAINING: 'pre-training',
  runs.TRANSFER: 'transfer',
  runs.ZERO_SHOT: 'zero-shot evaluation',
  runs.FINAL_EVALUATION: 'final evaluation',
}
_EVALUATIONS = (runs.ZERO_SHOT, runs.FINAL_EVALUATION)
_STATUSES = (dataset.DONE, dataset.RUNNING, dataset.WAITING, dataset.FAILED)
_SHOWN_LINES = 5  # Number of output lines shown for a failed run.


class StageEstimate(NamedTuple):
  """The total cost of the runs of a stage.

  Attributes:
    runs: the number of runs.
    left: the number of remaining runs.
    actor_steps: the actor steps of the remaining runs.
    hours: the duration of the remaining runs if executed one by one.
    is_measured: whether the duration is based on finished runs.
  """

  runs: int
  left: int
  actor_steps: int
  hours: float
  is_measured: bool


def estimates(
  folder: folders.Folder, specs: Sequence[runs.RunSpec]
) -> dict[str, StageEstimate]:
  """Estimates the cost of each stage."""
  found: dict[str, StageEstimate] = {}
  for stage in STAGES:
    group = [spec for spec in specs if spec.stage == stage]
    done = {spec.id for spec in group if spec.is_done(folder.path)}
    left = [spec for spec in group if spec.id not in done]
    finished = (spec for spec in group if spec.id in done)
    seconds = (records.read(folder.path, spec).seconds for spec in finished)
    measured = [each for each in seconds if each]
    estimate = sum(_seconds(spec, folder.scale) for spec in left)
    if measured:
      estimate = statistics.median(measured) * len(left)
    if group:
      found[stage] = StageEstimate(
        len(group),
        len(left),
        sum(spec.budget_steps for spec in left),
        estimate / 3600,
        bool(measured),
      )
  return found


def plan(
  folder: folders.Folder,
  specs: Sequence[runs.RunSpec],
  slots: Sequence[processes.Slot],
) -> str:
  """Describes the planned runs as text; starts nothing."""
  scale, by_stage = folder.scale, estimates(folder, specs)
  found = list(by_stage.values())
  total = [sum(one[i] for one in found) for i in range(4)]
  rows = [
    [title, num_runs, left, f'{actor_steps:,}', f'{hours:,.2f}']
    for title, (num_runs, left, actor_steps, hours) in (
      *((STAGES[stage], one[:4]) for stage, one in by_stage.items()),
      ('all', total),
    )
  ]
  header = ['', 'runs', 'left', 'actor steps left', 'hours']
  source = (
    'based on the finished runs in this directory'
    if found and all(one.is_measured for one in found)
    else f'estimated at {scale.steps_per_second:,g} actor steps per second for '
    'stages without finished runs'
  )
  time = (
    f'Hours of one slot, {source}. With {tables.counted(len(slots), "slot")}: '
    f'{_wall_hours(by_stage, slots):,.2f} h.'
  )
  learning = sum(not spec.is_evaluation for spec in specs)
  return '\n'.join(
    [
      tables.table(header, rows),
      time,
      f'Disk space: {learning * scale.megabytes / 1000:,.2f} GB in '
      f'{folder.path} (estimate).',
      pretraining(scale),
    ]
  )


def pretraining(scale: scales.Scale) -> str:
  """Describes which policy each seed uses."""
  return f'Pre-training is {scales.PRETRAINING[scale.pretraining]}.'


def status(folder: folders.Folder) -> str:
  """Describes the progress of the runs and their failures as text."""
  counts = collections.defaultdict[str, list[str]](list)
  failures: list[str] = []
  for spec in folder.specs():
    found = records.status_of(folder.path, spec)
    counts[f'{STAGES[spec.stage]}: {spec.arm}'].append(found)
    if found == dataset.FAILED:
      tail = records.read(folder.path, spec).tail[-_SHOWN_LINES:]
      failures += ['', records.failure(folder.path, spec)]
      failures += [f'  {line}' for line in tail]
  everything = [status for found in counts.values() for status in found]
  rows = [
    [name, *map(found.count, _STATUSES)]
    for name, found in (*counts.items(), ('all', everything))
  ]
  table = tables.table(['', *_STATUSES], rows)
  return '\n'.join([pretraining(folder.scale), table, *failures])


def _wall_hours(
  by_stage: Mapping[str, StageEstimate], slots: Sequence[processes.Slot]
) -> float:
  """Returns the hours of all runs if a worker distributes them over slots."""
  hours = {stage: one.hours for stage, one in by_stage.items()}
  num_gpus = sum(slot.is_gpu for slot in slots)
  if num_gpus in (0, len(slots)):
    return sum(hours.values()) / len(slots)
  evaluations = sum(hours.get(stage, 0) for stage in _EVALUATIONS)
  learning = sum(hours.values()) - evaluations
  return max(learning / num_gpus, evaluations / (len(slots) - num_gpus))


def _seconds(spec: runs.RunSpec, scale: scales.Scale) -> float:
  if spec.is_evaluation:
    return scale.evaluation_seconds
  return spec.budget_steps / scale.steps_per_second
