"""Agents that all tests of acting share."""

import functools

import pytest

from tests.agents import fakes


@pytest.fixture(name='agents', scope='session')
def make_agents(tmp_path_factory):
  """Makes an agent of a kind, and two sets of parameters for it."""
  folder = tmp_path_factory.mktemp('behavior') / 'exported'

  @functools.cache
  def make(kind):
    agent = fakes.make_agent(kind, folder)
    return agent, [fakes.variables_of(agent, seed) for seed in (0, 1)]

  return make
