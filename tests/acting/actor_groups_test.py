"""Groups of environments step alternately, and count their steps."""

import numpy as np
import pytest

pytest.importorskip('acme', reason='needs the full environment')

from bt_acme.acting import actor_groups, vector_actor
from bt_acme.config import run as run_config
from bt_acme.environments import vector
from bt_acme.runtime import actor_node, progress
from bt_acme.runtime import coordinator as coordinator_lib
from tests.acting import runs
from tests.agents import fakes
from tests.runtime import contexts


def counts(sinks):
  return [len(sink.transitions) for sink in sinks]


def make_pipeline(num_environments, group_size):
  """Makes a pipeline of fake environments; returns it with all sinks."""
  agent = fakes.make_agent('r2d2')
  variables = fakes.variables_of(agent)
  groups, sinks = [], runs.recorders(num_environments)
  for first in range(0, num_environments, group_size):
    part = slice(first, first + group_size)
    actor = vector_actor.VectorActor(
      agent,
      epsilons=np.full(group_size, 0.5),
      seed=0,
      first_environment=first,
      sinks=sinks[part],
    )
    actor.update_variables(variables)
    environments = vector.VectorEnvironment(
      [fakes.MarkedEnvironment(i) for i in range(num_environments)[part]]
    )
    groups.append(actor_groups.Group(environments, actor, first))
  return actor_groups.Pipeline(groups), sinks


@pytest.mark.parametrize('inference', ['local', 'server'])
def test_an_actor_counts_all_its_transitions(tmp_path, inference, monkeypatch):
  num, budget = 4, 51
  run = run_config.RunConfig(
    workdir=str(tmp_path),
    max_actor_steps=budget,
    envs_per_actor=num,
    inference=inference,
  )
  coordinator = coordinator_lib.Coordinator(
    run, progress.Progress, contexts.make()
  )
  coordinator.resume({})
  pipeline, sinks = make_pipeline(num, run.group_size)
  context = contexts.make(coordinator=coordinator, learner=object())
  agent = fakes.make_agent('r2d2')
  actor = actor_node.ActorNode(run, agent, 0, None, context)
  monkeypatch.setattr(actor, '_make_groups', lambda: pipeline.groups)
  actor.run()
  coordinator.close()
  counted = coordinator.get_counts()['actor_steps']
  assert budget <= counted < budget + num
  assert sum(counts(sinks)) == counted


@pytest.mark.parametrize('group_size', [4, 2, 1])
def test_each_environment_acts_once_per_step(group_size):
  pipeline, sinks = make_pipeline(4, group_size)
  # Episodes have just started, so every environment acts.
  assert pipeline.prime() == 4 - group_size
  assert counts(sinks) == [0] * 4
  actor_steps, _ = pipeline.step()
  assert actor_steps == 4
  assert counts(sinks) == [1] * 4
  pipeline.drain()
  # Unfinished steps have been observed, too.
  ahead = [2 if i >= group_size else 1 for i in range(4)]
  assert counts(sinks) == ahead
  assert pipeline.statistics() == {}
  pipeline.close()
