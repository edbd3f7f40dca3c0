import numpy as np

from bt_acme.acting import policy as policy_lib
from tests.acting import runs
from tests.agents import fakes


def test_agents_of_one_shape_are_compiled_once():
  policy_lib._compiled.cache_clear()  # Remove entries of earlier tests.
  agent = fakes.make_agent('r2d2')
  steps = []
  for each, seed in ((agent, 0), (agent.named('elsewhere'), 1)):
    policy = policy_lib.VectorPolicy(each, epsilons=[0.1], seed=seed)
    policy.update_variables(fakes.variables_of(each))
    observation = np.zeros((1, *each.spec.observation_shape), np.uint8)
    policy.request(runs.policy_input(1, observation))
    policy.receive()
    steps.append(policy._step)
  assert steps[0] is steps[1]
  assert steps[0]._cache_size() == 1
