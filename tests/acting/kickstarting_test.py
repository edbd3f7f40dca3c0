"""Tests that actors record the proposals of the behavior of each episode."""

import dataclasses

import pytest

from bt_acme import behaviors
from bt_acme.core import types
from tests.acting import runs
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')


def _play(transferred, **settings):
  """Returns the recorder of each environment."""
  agent = dataclasses.replace(fakes.make_agent('bt'), behaviors=transferred)
  agent = fakes.changed(agent, transfer=settings)
  sinks = runs.recorders()
  variables = [fakes.variables_of(agent)] * 2
  runs.play(agent, range(runs.N), variables, sinks=sinks)
  return sinks


def _proposed(transition):
  """Returns the action that the scripted behavior proposes."""
  return fakes.scripted()(transition.observation, None, None)


def test_each_step_has_the_proposal_of_the_behavior_of_the_episode():
  constant = fakes.Proposing(1)
  scripted = behaviors.FromCallable(fakes.scripted)
  drawn = set()
  for sink in _play((scripted, constant), kickstarting=0.5):
    for steps in sink.episodes():
      flown = [x for x in steps if x.source == types.FLIGHT]
      assert all(x.proposal == x.action for x in flown)
      proposals = [x.proposal for x in steps]
      candidates = ([_proposed(x) for x in steps], [1] * len(steps))
      matches = [k for k in (0, 1) if proposals == candidates[k]]
      assert matches
      if len(matches) == 1:
        drawn.add(*matches)
  assert drawn == {0, 1}
