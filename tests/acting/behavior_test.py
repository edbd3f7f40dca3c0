"""Tests the checks and seeds of behaviors."""

import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import behaviors
from bt_acme.acting import behavior as behavior_lib
from bt_acme.core.behavior_transfer import behavior_core
from tests.agents import fakes

OBSERVATION = np.zeros((5, 5, 1), np.uint8)


def test_seeds_follow_behavior_and_environment_not_the_process():
  seeds = []

  def make_policy(seed):
    seeds.append(seed)
    return lambda *_: 0

  twice = [behaviors.FromCallable(make_policy)] * 2
  for some in (range(4), [2]):
    settings = {'seed': 7, 'environments': some, 'proposers': (0, 1)}
    behavior_lib.make_hosts(twice, 3, **settings)
  assert len(set(seeds[:8])) == 8
  assert seeds[8:] == [seeds[2], seeds[6]]


def test_a_host_with_only_the_old_names_works():
  with pytest.warns(DeprecationWarning, match='OldHost.* is deprecated. Use'):

    class OldHost(behavior_lib.Host):
      def feed(self, *shown):
        assert super().feed(*shown) == ()
        return 'fed', *shown

      def digest(self, features):
        super().digest(features)
        self.features = features

  host = OldHost()
  with pytest.warns(DeprecationWarning):
    assert host.inputs(1, 2, 3, 4) == ('fed', 1, 2, 3, 4)
    host.update('features')
  assert host.features == 'features'


def test_a_host_still_has_the_old_names():
  class NewHost(behavior_lib.Host):
    def inputs(self, *shown):
      return 'given', *shown

    def update(self, features):
      self.features = features

  host = NewHost()
  with pytest.warns(DeprecationWarning, match='Host.digest .* Use update'):
    host.digest('features')
  assert host.features == 'features'
  with pytest.warns(DeprecationWarning, match='Host.feed .* Use inputs'):
    assert host.feed(1, 2, 3, 4) == ('given', 1, 2, 3, 4)
  with pytest.warns(DeprecationWarning, match='Mixed.feed'):

    class Mixed(NewHost):
      def feed(self, *shown):
        return 'fed'

  assert Mixed().inputs(1, 2, 3, 4) == 'fed'


def test_the_input_of_a_core_still_has_its_old_name():
  inputs = behavior_core.BehaviorInput(*[jnp.zeros([])] * 4, host_inputs=7)
  with pytest.warns(DeprecationWarning, match='Use BehaviorInput.host_inputs'):
    assert inputs.feed == 7


class ProposingWithAHost(fakes.Proposing):
  """A behavior with a host side, so that its host inputs are unknown."""

  def make_host(self, action_spec, seeds):
    return super().make_host(action_spec, seeds)


WRONG = [2.7, np.nan, True, np.zeros(2, np.int32)]


@pytest.mark.parametrize('action', WRONG)
def test_a_core_that_proposes_a_non_integer_is_an_error(action):
  message = "behavior 'mine' returns .* Return one integer in"
  with pytest.raises(TypeError, match=message):
    behavior_lib.make_core(fakes.Proposing(jnp.asarray(action)), 3, OBSERVATION)
  core = behavior_lib.make_core(ProposingWithAHost(action), 3, OBSERVATION)
  with pytest.raises(TypeError, match=message):
    core.step((), None, ())


def test_behaviors_cannot_change_what_they_are_shown():
  (shown,) = behavior_lib.read_only([OBSERVATION])
  with pytest.raises(ValueError, match='read-only'):
    shown[0] = 1
  OBSERVATION[0] = 0  # The original stays writable.


def test_a_proposal_out_of_range_is_named():
  proposing = [fakes.Proposing(0, name) for name in ('one', 'two')]

  def check(*proposals):  # [environment, behavior]
    behavior_lib.check_proposals(
      proposing, np.array(proposals), num_actions=3, actor_step=7
    )

  check([0, 2], [2, 0])
  with pytest.raises(ValueError, match=r"'two' returned 3 .* in \[0, 2\]"):
    check([0, 3], [2, 0])
  message = "'one' returned -1 at actor step 7 of environment 1"
  with pytest.raises(ValueError, match=message):
    check([0, 2], [-1, 0])
