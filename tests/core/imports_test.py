"""Tests that processes that only act do not import the learner's packages.

rlax and optax cost each process 0.7 s and 43 MB, and on Python 3.12 almost half
of the import time.
"""

import json
import subprocess
import sys

import pytest

_LEARNERS_OWN = ('distrax', 'optax', 'rlax', 'tensorflow_probability')
_PROGRAM = f"""
import importlib, json, sys
importlib.import_module(sys.argv[1])
print(json.dumps([name for name in {_LEARNERS_OWN!r} if name in sys.modules]))
"""


def _loaded_by(module):
  """Returns the learner's packages that importing a module loads."""
  done = subprocess.run(
    [sys.executable, '-c', _PROGRAM, module],
    capture_output=True,
    text=True,
    check=True,
  )
  return json.loads(done.stdout)


@pytest.mark.parametrize(
  'module',
  [
    'bt_acme.acting.variables',
    'bt_acme.behaviors',
    'bt_acme.replay.sinks',
  ],
)
def test_acting_does_not_import_the_learners_packages(module):
  assert _loaded_by(module) == []


@pytest.mark.parametrize(
  'module', ['actor_node', 'evaluator_node', 'inference_node', 'coordinator']
)
def test_nodes_that_only_act_do_not_either(module):
  pytest.importorskip('reverb', reason='needs the full environment')
  assert _loaded_by(f'bt_acme.runtime.{module}') == []


def test_imports_of_the_learner_are_detected():
  loaded = _loaded_by('bt_acme.learner_assembly')
  assert {'optax', 'rlax'} <= set(loaded)
