import numpy as np
import pytest

from bt_acme.acting import policy as policy_lib
from tests.agents import fakes


def test_parameters_come_first():
  agent = fakes.make_agent('r2d2')
  policy = policy_lib.VectorPolicy(agent, epsilons=[0.1], seed=0)
  inputs = policy_lib.PolicyInput(
    observation=np.zeros((1, *agent.spec.observation_shape), np.uint8),
    prev_action=np.zeros(1, np.int32),
    prev_reward=np.zeros(1, np.float32),
    is_first=np.zeros(1, bool),
    is_last=np.zeros(1, bool),
    feeds=(),
  )
  with pytest.raises(RuntimeError, match='update_variables must come before'):
    policy.request(inputs)
