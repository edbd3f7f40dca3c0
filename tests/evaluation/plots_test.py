"""What curves show."""

import numpy as np

from bt_acme.evaluation import plots


def test_a_curve_is_the_mean_of_the_last_episodes_from_a_fifth_of_them_on():
  returns = np.arange(30.0)
  returns[4] = np.nan  # A row of something else.
  steps, means = plots.smoothed_curve(
    {'actor_steps': 100 * np.arange(30), 'episode_return': returns},
    'episode_return',
    window=10,
  )
  kept = [x for x in range(30) if x != 4]
  np.testing.assert_array_equal(steps, [100 * x for x in kept[1:]])
  expected = [np.mean(kept[max(i - 10, 0) : i]) for i in range(2, 30)]
  np.testing.assert_allclose(means, expected)
