import dataclasses

import numpy as np
import pytest

from bt_acme.acting import policy as policy_lib
from tests.acting import runs
from tests.agents import fakes


def _inputs(agent):
  return runs.policy_input(
    1, np.zeros((1, *agent.spec.observation_shape), np.uint8)
  )


def test_agents_of_one_shape_are_compiled_once():
  policy_lib._compiled.cache_clear()  # Remove entries of earlier tests.
  agent = fakes.make_agent('r2d2')
  elsewhere = dataclasses.replace(
    agent, spec=agent.spec._replace(name='elsewhere')
  )
  steps = []
  for each, seed in ((agent, 0), (elsewhere, 1)):
    policy = policy_lib.VectorPolicy(each, epsilons=[0.1], seed=seed)
    policy.update_variables(fakes.variables_of(each))
    policy.request(_inputs(each))
    policy.receive()
    steps.append(policy._step)
  assert steps[0] is steps[1]
  assert steps[0]._cache_size() == 1


def test_acting_without_parameters_is_an_error():
  agent = fakes.make_agent('r2d2')
  policy = policy_lib.VectorPolicy(agent, epsilons=[0.1], seed=0)
  inputs = _inputs(agent)
  with pytest.raises(RuntimeError, match='Call update_variables before'):
    policy.request(inputs)
