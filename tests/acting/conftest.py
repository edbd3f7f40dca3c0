"""Agents shared by all tests of acting."""

import functools

import pytest

from tests.agents import fakes


@pytest.fixture(name='agents', scope='session')
def make_agents(tmp_path_factory):
  """Returns a factory of agents by kind, each with two sets of parameters."""
  folder = tmp_path_factory.mktemp('behavior') / 'exported'

  @functools.cache
  def make(kind):
    agent = fakes.make_agent(kind, folder)
    return agent, [fakes.variables_of(agent, seed) for seed in (0, 1)]

  return make
