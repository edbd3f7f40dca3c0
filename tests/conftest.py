"""Settings that hold for every test, and for the processes a test starts."""

import os

# Before the first import of JAX: tests never take an accelerator.
os.environ['JAX_PLATFORMS'] = 'cpu'
