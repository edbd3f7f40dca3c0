"""All nodes of a run in threads of this process.

Version 0.1.0 started and completed the run, before the modules of the package
were moved. Here, the run continues with a larger budget.
"""

import dataclasses
import json
import pathlib
import shutil
import types

import pytest

from bt_acme import behaviors, evaluation
from bt_acme.config import run as run_config
from bt_acme.launching import recorded_agent, starting
from bt_acme.runtime import actor_node, evaluator_node
from bt_acme.runtime import workdir as workdir_lib
from tests.agents import fakes
from tests.launch import scripts
from tests.runtime import contexts

# Launchpad calls a deprecated function of threads.
pytestmark = pytest.mark.filterwarnings('ignore:setDaemon:DeprecationWarning')

_OLD_RUN = pathlib.Path(__file__).parents[1] / 'data' / 'run_of_0_1_0'
_BUDGET = 700  # The old run has taken 600 actor steps.


def make(workdir):
  """Returns the continued run, and its agent."""
  identity = workdir_lib.read_identity(str(_OLD_RUN))
  run = run_config.RunConfig(
    **identity['run'],
    workdir=str(workdir),
    lp_launch_type='local_mt',
    max_actor_steps=_BUDGET,
    num_evaluators=0,
  )
  return run, recorded_agent.make(str(_OLD_RUN), identity)


def test_an_old_run_is_resumed(tmp_path, shared_functions):
  workdir = tmp_path / 'run'
  shutil.copytree(_OLD_RUN, workdir)
  assert starting.start(*make(workdir)) == 0
  old, new = (
    json.loads((workdir / name / 'values.json').read_text())['values']
    for name in ('checkpoints/checkpoint-1', 'checkpoints/checkpoint-2')
  )
  assert old['counts'] == {'actor_steps': 600, 'learner_steps': 792}
  assert _BUDGET <= new['counts']['actor_steps'] < _BUDGET + 2
  assert new['counts']['learner_steps'] > 792
  assert new['learner']['learner_steps'] == new['counts']['learner_steps']
  # Every step was added to the statistics of its environment.
  for index in '01':
    before, after = (
      values['learner']['statistics'][index]['error_count'][0]
      for values in (old, new)
    )
    assert before + 30 < after < before + 130
  # The logs continue in the same files.
  first, rows = scripts.rows(_OLD_RUN, 'actor'), scripts.rows(workdir, 'actor')
  columns = list(first[0])  # Newer versions have more.
  again = [{name: row[name] for name in columns} for row in rows]
  assert again[: len(first)] == first and len(rows) > len(first)
  assert all(600 <= int(row['actor_steps']) for row in rows[len(first) :])
  learner = scripts.rows(workdir, 'learner')
  assert int(learner[-1]['learner_steps']) > 792
  # A column that the old version did not have.
  assert learner[0]['first_visit_share'] == ''
  assert 0 <= float(learner[-1]['first_visit_share']) <= 1
  behavior = behaviors.Exported(str(workdir / 'behavior'))
  assert behavior.actor_steps == new['counts']['actor_steps']


def test_each_attempt_of_an_actor_plays_other_episodes(tmp_path):
  asked = []
  coordinator = types.SimpleNamespace(lease=lambda *args: asked.append(args))
  context = contexts.make(coordinator=coordinator)
  run, agent = make(tmp_path)
  nodes = [
    actor_node.ActorNode(
      *(run, agent, 0, None), dataclasses.replace(context, attempt=attempt)
    )
    for attempt in (0, 1, 2)
  ]
  assert len({node._seed for node in nodes}) == 3
  # A superseded attempt ends without a report.
  nodes[1]._pipeline = types.SimpleNamespace(prime=int)
  assert nodes[1].iterate() is None
  assert [args[:2] for args in asked] == [(0, 1)]


def test_all_evaluators_play_the_same_episodes(tmp_path, monkeypatch):
  monkeypatch.setattr(evaluation, 'Evaluator', lambda agent, **own: own)
  run, agent = make(tmp_path)
  one, other, later = (
    evaluator_node.EvaluatorNode(
      *(run, agent, index, contexts.make())
    )._make_evaluator(point)
    for index, point in ((0, 600), (1, 600), (0, 700))
  )
  assert one == other != later


def test_an_actor_takes_granted_steps_and_fetches_periodically(tmp_path):
  run, agent = make(tmp_path)
  agent = fakes.changed(agent, acting={'variable_update_period': 3})
  grants, calls = [6, 5, 200, 0], []
  coordinator = types.SimpleNamespace(
    lease=lambda *args: calls.append('lease') or grants.pop(0),
    report_acting=lambda index, attempt, taken, episodes: calls.append(taken),
  )
  learner = types.SimpleNamespace(
    get_variables=lambda names: calls.append('fetch') or names
  )
  node = actor_node.ActorNode(
    *(run, agent, 0, None),
    contexts.make(coordinator=coordinator, learner=learner),
  )
  actor = types.SimpleNamespace(update_variables=lambda variables: None)
  node._pipeline = types.SimpleNamespace(
    prime=lambda: 2,  # The first step, which no lease has granted yet.
    step=lambda: calls.append('step') or (2, []),
    drain=list,
    groups=[types.SimpleNamespace(actor=actor)],
    statistics=dict,
    share_scores=lambda exchange: None,
  )
  while node.iterate() is not None:
    pass
  text = ' '.join(map(str, calls))
  assert text.startswith(
    'lease step step lease step fetch step step lease step fetch step'
  )
  assert text.count('step') == 105 and text.count('fetch') == 105 // 3
  # A report after every 32 calls, and one at the end.
  assert [x for x in calls if isinstance(x, int)] == [66, 64, 64, 18]
