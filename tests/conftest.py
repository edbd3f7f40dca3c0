"""Settings that hold for every test, and for the processes a test starts."""

import importlib.util
import os

# Before the first import of JAX: tests never take an accelerator.
os.environ['JAX_PLATFORMS'] = 'cpu'
# Compiling takes most of the tests' time. The core's are run with optimization
# too, in its own environment.
if importlib.util.find_spec('reverb') is not None:
  os.environ['XLA_FLAGS'] = ' '.join(
    [os.environ.get('XLA_FLAGS', ''), '--xla_backend_optimization_level=0']
  ).strip()
