"""All nodes of a run in threads of this process, without Launchpad.

Version 0.1.0 started and completed the run, before the modules of the package
were moved. Here, the run continues with a larger budget.
"""

import contextlib
import dataclasses
import functools
import json
import pathlib
import shutil
import threading
import types
from unittest import mock

import numpy as np
import pytest

pytest.importorskip('reverb', reason='needs the full environment')

import reverb

from bt_acme import agents, behaviors, environments
from bt_acme import config as config_lib
from bt_acme.config import run as run_config
from bt_acme.replay import writer
from bt_acme.runtime import (
  actor_node,
  coordinator,
  evaluator_node,
  learner_node,
  progress,
  reverb_learner,
)
from bt_acme.runtime import workdir as workdir_lib
from tests.launch import scripts
from tests.runtime import contexts

_OLD_RUN = pathlib.Path(__file__).parents[1] / 'data' / 'run_of_0_1_0'
_BUDGET = 700  # The old run has taken 600 actor steps.


class Nodes:
  """The nodes of one run, each in its own thread."""

  def __init__(self, run, builder):
    self.stop = contexts.Stop()
    self._server = reverb.Server(builder.make_replay_tables(None))
    replay = reverb.Client(f'localhost:{self._server.port}')

    def context(**clients):
      return contexts.make(self.stop, replay=replay, **clients)

    self.coordinator = coordinator.Coordinator(
      run, progress.Progress, context()
    )
    clients = {'coordinator': self.coordinator}
    self.learner = learner_node.LearnerNode(
      run,
      builder.agent,
      functools.partial(reverb_learner.make, builder, None),
      context(**clients),
    )
    clients['learner'] = self.learner
    nodes = {
      'coordinator': self.coordinator,
      'learner': self.learner,
      'actor': actor_node.ActorNode(
        run, builder.agent, 0, writer.ReverbWriter, context(**clients)
      ),
      'evaluator': evaluator_node.EvaluatorNode(
        run, builder.agent, 0, context(**clients)
      ),
    }
    self.errors = []
    self._threads = {
      name: threading.Thread(target=self._run, args=(node,), daemon=True)
      for name, node in nodes.items()
    }

  def _run(self, node):
    try:
      node.run()
    except BaseException as error:
      self.errors.append(error)
      self.stop.set()

  def start(self):
    for thread in self._threads.values():
      thread.start()

  def wait_for_coordinator(self):
    self._threads['coordinator'].join(200)
    assert not self._threads['coordinator'].is_alive() and not self.errors

  def end(self):
    """Stops all nodes; returns whether they have ended."""
    self.stop.set()
    for thread in self._threads.values():
      thread.join(20)
    self._server.stop()
    return not any(thread.is_alive() for thread in self._threads.values())


def make_builder():
  identity = json.loads((_OLD_RUN / 'config.json').read_text())
  config = config_lib.from_dict(config_lib.NGUConfig, identity['config'])
  name = identity['run']['env']
  with contextlib.closing(environments.make(name, seed=0)) as environment:
    return agents.NGUBuilder(config, agents.spec_of(environment, name))


def make_run(workdir, **changes):
  identity = json.loads((_OLD_RUN / 'config.json').read_text())
  settings = {
    **identity['run'],
    'max_actor_steps': _BUDGET,
    'evaluation_episodes': 2,
    'workdir': str(workdir),
    **changes,
  }
  return run_config.RunConfig(**settings)


def checkpoint(workdir, number):
  """Returns the values and arrays of a checkpoint."""
  folder = workdir / 'checkpoints' / f'checkpoint-{number}'
  values = json.loads((folder / 'values.json').read_text())['values']
  with np.load(folder / 'arrays.npz') as arrays:
    return values, dict(arrays)


@pytest.fixture(name='resumed', scope='module')
def resume(tmp_path_factory, shared_functions):
  """Resumes the run until its budget is used up; returns the workdir."""
  workdir = tmp_path_factory.mktemp('nodes') / 'run'
  shutil.copytree(_OLD_RUN, workdir)
  run = make_run(workdir, snapshot_steps='650,700', evaluation_period=50)
  builder = make_builder()
  assert workdir_lib.claim(run, builder.agent.config)
  nodes = Nodes(run, builder)
  nodes.start()
  nodes.wait_for_coordinator()
  assert nodes.end() and not nodes.errors
  return workdir


def test_counts_continue_from_the_checkpoint(resumed):
  (old, old_arrays), (new, new_arrays) = (
    checkpoint(resumed, number) for number in (1, 2)
  )
  assert old['counts'] == {'actor_steps': 600, 'learner_steps': 792}
  assert _BUDGET <= new['counts']['actor_steps'] < _BUDGET + 2
  assert new['counts']['learner_steps'] > 792
  assert new['learner']['learner_steps'] == new['counts']['learner_steps']
  # New sequences started with the largest priority, which decreases by at most
  # 1% per learner step from the value of the old run.
  assert make_builder().agent.config.replay.initial_priority == 'largest'
  more_steps = new['counts']['learner_steps'] - 792
  largest = old['learner']['max_priority']
  assert new['learner']['max_priority'] > largest * 0.99**more_steps > 0
  # The optimizers have their own step counts.
  assert [a.shape for a in old_arrays.values()] == [
    a.shape for a in new_arrays.values()
  ]
  steps = [
    int(a) for a in new_arrays.values() if a.dtype == np.int32 and a.shape == ()
  ]
  assert set(steps) == {new['learner']['learner_steps']}
  # Every step was added to the statistics of its environment.
  for index in '01':
    before, after = (
      values['learner']['statistics'][index]['error_count'][0]
      for values in (old, new)
    )
    assert before + 30 < after < before + 130


def test_logs_continue_in_the_same_files(resumed):
  old, new = scripts.rows(_OLD_RUN, 'actor'), scripts.rows(resumed, 'actor')
  columns = list(old[0])  # Newer versions have more.
  assert [
    {name: row[name] for name in columns} for row in new[: len(old)]
  ] == old
  assert len(new) > len(old)
  assert all(600 <= int(row['actor_steps']) for row in new[len(old) :])
  learner = scripts.rows(resumed, 'learner')
  assert int(learner[-1]['learner_steps']) > 792
  # Columns that the old version did not have.
  assert learner[0]['first_visit_share'] == ''
  assert 0 <= float(learner[-1]['first_visit_share']) <= 1
  assert float(learner[-1]['priority_over_uniform']) > 0
  period = make_builder().agent.config.learner.target_update_period
  copies = int(learner[-1]['learner_steps']) // period
  assert float(learner[-1]['target_copies']) == copies


def test_the_final_parameters_are_evaluated_and_exported(resumed):
  evaluator = scripts.rows(resumed, 'evaluator')
  assert [int(row['evaluation_point']) for row in evaluator] == [
    *(650, 650, 700, 700),
  ]
  assert 650 <= int(evaluator[0]['actor_steps']) <= 701
  assert {int(row['actor_steps']) for row in evaluator[2:]} <= {700, 701}
  # All evaluations have been removed.
  assert not list((resumed / 'checkpoints').glob('evaluation-*'))
  behavior = behaviors.Exported(str(resumed / 'behavior'))
  values, arrays = checkpoint(resumed, 2)
  assert behavior.actor_steps == values['counts']['actor_steps']
  leaf = next(iter(behavior.variables.agent.values()))
  assert any(
    np.array_equal(array, value)
    for array in arrays.values()
    for value in leaf.values()
  )


def test_snapshots_are_exported_during_the_run(resumed):
  middle, last, end = (
    behaviors.Exported(str(resumed / name))
    for name in ('behavior-650', 'behavior-700', 'behavior')
  )
  assert 650 <= middle.actor_steps <= last.actor_steps == end.actor_steps
  # The learner may still take steps after the last actor step.
  assert last.agent == middle.agent == end.agent
  assert middle.statistics.error_count <= end.statistics.error_count


def make_actor(run, attempt, lease=None, **learner):
  clients = {
    'coordinator': types.SimpleNamespace(lease=lease),
    'learner': types.SimpleNamespace(**learner),
  }
  context = dataclasses.replace(contexts.make(**clients), attempt=attempt)
  return actor_node.ActorNode(run, make_builder().agent, 0, None, context)


def test_each_attempt_of_an_actor_plays_other_episodes(tmp_path, monkeypatch):
  drawn = []

  def note(*args, seed, **kwargs):
    drawn.append(seed)
    return mock.Mock()

  monkeypatch.setattr(actor_node.vector_actor, 'VectorActor', note)
  monkeypatch.setattr(actor_node.environments, 'make_vector', note)
  run = make_run(tmp_path)
  for attempt in (0, 1, 2):
    node = make_actor(
      run,
      attempt,
      get_statistics=lambda *args: None,
      get_variables=lambda names: names,
    )
    node._make_group(0, [])
  agent, environment = drawn[::2], drawn[1::2]
  assert agent == environment and len(set(agent)) == 3
  assert agent[0] == run.seed


def test_a_superseded_attempt_reports_nothing(tmp_path):
  asked = []
  node = make_actor(make_run(tmp_path), 1, lambda *args: asked.append(args))
  node._pipeline = types.SimpleNamespace(prime=int, close=lambda: None)
  assert node.iterate() is None  # The fake clients accept no reports.
  node.close()
  assert [args[:2] for args in asked] == [(0, 1)]
