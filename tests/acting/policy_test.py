import numpy as np

from bt_acme import assembly
from bt_acme import config as config_lib
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


def test_a_behavior_acts_with_its_current_parameters():
  behavior, same = fakes.Proposing(np.int32(0)), fakes.Proposing(np.int32(0))
  config = fakes.make_config(config_lib.BTConfig)
  agent, equal, other = (
    assembly.Agent(config, fakes.SPEC, (each,))
    for each in (behavior, behavior, same)
  )
  assert agent == equal and hash(agent) == hash(equal) and agent != other
  found = []
  for behavior.action in (0, 1):
    policy = policy_lib.VectorPolicy(agent, epsilons=[0.1], seed=0)
    policy.update_variables(fakes.variables_of(agent))
    found.append((*policy._params.behaviors, policy._core))
  assert [int(action) for action, _ in found] == [0, 1]
  assert found[0][1] is found[1][1]
