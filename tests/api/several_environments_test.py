"""Tests runs in several environments through the API."""

import numpy as np
import pytest

import bt_acme

_NAMES = ['Chain-5', 'Chain-5:random_actions']


def test_rows_are_split_by_environment():
  names = list(_NAMES)
  run = bt_acme.train(
    ','.join(names),
    max_actor_steps=600,
    **dict.fromkeys(('torso_size', 'lstm_size', 'head_size'), 8),
    min_replay_size=10,
    samples_per_insert=4.0,
    num_environments=3,
    evaluation_period=600,
    evaluation_episodes=4,
    progress='off',
  )
  for columns, environments in ((run.episodes, 3), (run.evaluations, 4)):
    split = run.by_environment(columns)
    assert list(split) == names
    assert sum(len(s['environment']) for s in split.values()) == len(
      columns['environment']
    )
    for i, name in enumerate(names):
      assert (split[name]['environment'] % 2 == i).all()
    assert len(np.unique(columns['environment'])) == environments
  assert run.by_environment({}) == {name: {} for name in names}
  with pytest.raises(ValueError, match="lacks the column 'environment'"):
    run.by_environment(run.learner)
