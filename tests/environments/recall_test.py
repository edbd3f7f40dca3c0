"""Tests `Recall`, which requires memory of a sign."""

import numpy as np
import pytest

from bt_acme import environments


def _shown(timestep):
  return int(np.argmax(timestep.observation[0, 0, :2]))


@pytest.mark.parametrize('answer, last', [(0, 1), (1, -1)])
@pytest.mark.parametrize('error, cost', [(0, 0), (1, -0.5)])
def test_recall(answer, last, error, cost):
  environment = environments.make('Recall-3', seed=0)
  signs, copies = [], []
  for _ in range(20):
    timestep = environment.reset()
    assert timestep.observation[..., 2].all()
    signs.append(_shown(timestep))
    timestep = environment.step(error)
    rewards = [timestep.reward]
    for _ in range(3):
      assert not timestep.observation[..., 2].any()
      copies.append(_shown(timestep))
      timestep = environment.step(copies[-1] ^ error)
      rewards.append(timestep.reward)
    # The observation of the question is blank.
    assert not timestep.observation.any() and not timestep.last()
    timestep = environment.step(signs[-1] ^ answer)
    assert timestep.last() and timestep.discount == 0
    assert rewards == [0, *[cost] * 3]
    assert timestep.reward == last
  assert set(signs) == {0, 1}
  assert 0.3 < np.mean(copies) < 0.7
  assert environment.step(0).first()
