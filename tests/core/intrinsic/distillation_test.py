import jax.numpy as jnp
import numpy as np

from bt_acme.core.intrinsic import distillation


def test_prediction_error_is_a_sum_of_squares():
  prediction = jnp.float32([[1, 2], [3, 4]])
  target = jnp.float32([[1, 0], [0, 0]])
  np.testing.assert_array_equal(
    distillation.prediction_error(prediction, target), [4, 25]
  )
