"""Makes implicit dtype promotion an error in the tests of the core."""

import jax
import pytest


@pytest.fixture(autouse=True)
def strict_dtype_promotion():
  with jax.numpy_dtype_promotion('strict'):
    yield
