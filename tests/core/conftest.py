"""The core's arithmetic never changes a dtype by accident."""

import jax
import pytest


@pytest.fixture(autouse=True)
def strict_dtype_promotion():
  with jax.numpy_dtype_promotion('strict'):
    yield
