"""Groups of environments step alternately, and count their steps."""

import numpy as np
import pytest

from bt_acme.acting import actor_groups, vector_actor
from tests.acting import runs
from tests.agents import fakes


@pytest.mark.parametrize('group_size', [4, 2, 1])
def test_each_environment_acts_once_per_step(group_size):
  agent, sinks, groups = fakes.make_agent('r2d2'), runs.recorders(4), []
  for first in range(0, 4, group_size):
    where = range(4)[first : first + group_size]
    actor = vector_actor.VectorActor(
      agent,
      epsilons=np.full(group_size, 0.5),
      seed=0,
      first_environment=first,
      sinks=[sinks[i] for i in where],
    )
    actor.update_variables(fakes.variables_of(agent))
    groups.append(actor_groups.Group(runs.marked(where), actor))
  pipeline = actor_groups.Pipeline(groups)

  def counts():
    return [len(sink.transitions) for sink in sinks]

  # Episodes have just started, so every environment acts.
  assert pipeline.prime() == 4 - group_size
  assert counts() == [0] * 4
  actor_steps, _ = pipeline.step()
  assert actor_steps == 4
  assert counts() == [1] * 4
  counted = 8 - group_size
  for _ in range(30):  # Starting an episode is not a step.
    counted += pipeline.step()[0]
  pipeline.drain()
  assert sum(counts()) == counted < 4 * 31 + 4 - group_size
  assert pipeline.statistics() == {}
  pipeline.close()
