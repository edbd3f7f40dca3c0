"""Tests every step of acting, from the environments to the replay."""

import numpy as np
import pytest

from bt_acme.core import types
from tests.acting import runs

pytestmark = pytest.mark.usefixtures('shared_functions')

# Agents, and combinations of behavior transfer and rewards.
KINDS = (
  *('r2d2', 'ngu', 'bt'),
  'bt:extra_action=False,flight_recurrent_state=hold',
  'ngu:intrinsic_reward=constant',
  'ngu:intrinsic_reward=rnd,reward_observation=next',
)


# The tests of the replay show that sequences contain the recorded steps.
@pytest.mark.parametrize('kind', KINDS)
def test_each_step_is_recorded_unchanged(agents, kind):
  agent, variables = agents(kind)
  holds = kind.endswith('hold')
  recorders, sources = runs.recorders(), set()
  actor, _ = runs.play(agent, range(runs.N), variables, sinks=recorders)
  for i, recorder in enumerate(recorders):
    log = runs.Log(agent, variables, i)
    log.follow(
      [int(x.action) for x in recorder.transitions],
      [holds and x.source == types.FLIGHT for x in recorder.transitions],
    )
    runs.assert_matches_log(recorder, agent, log.steps, runs.EPSILONS[i])
    assert len(recorder.transitions) > 40 and len(recorder.ends) > 3
    sources |= {int(x.source) for x in recorder.transitions}
    if kind == 'ngu':
      # Only valid steps count, and statistics persist across episodes.
      assert actor.statistics().error_count[i] == len(recorder.transitions)
      for mine, theirs in zip(actor.statistics(), log.statistics, strict=True):
        np.testing.assert_allclose(mine[i], theirs[0], rtol=1e-4)
  wanted = {types.OWN}
  if kind.startswith('bt'):
    extra = agent.config.transfer.extra_action
    wanted |= {types.FLIGHT, types.EXTRA} if extra else {types.FLIGHT}
  assert sources == wanted
