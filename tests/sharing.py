"""Lets equal agents in a process share compiled functions.

JAX compiles a function again for each new function object, and every learner,
actor core and inference server creates its own objects. Tests create hundreds
of them for only a few agents, so this module creates the pure functions of each
agent once. The functions have no state, so tests do not affect each other.
"""

import functools

from bt_acme import learner_assembly
from bt_acme.acting import batched_core, grouped_core

_SIZE = 16  # The number of cached agents, which limits memory.


def share_compiled_functions(monkeypatch):
  """Creates learner cores and actor cores only once for equal arguments."""
  monkeypatch.setattr(
    learner_assembly,
    'make_learner_core',
    functools.lru_cache(_SIZE)(learner_assembly.make_learner_core),
  )
  for module, name in (
    (batched_core, 'BatchedCore'),
    (grouped_core, 'GroupedCore'),
  ):
    make = functools.partial(_make_core, getattr(module, name))
    monkeypatch.setattr(module, name, functools.lru_cache(_SIZE)(make))


def _make_core(core_class, agent, **settings):
  core = core_class(agent, **settings)
  # Each access creates a new bound method, and JAX discards a compiled function
  # with its object. These methods exist as long as the core.
  core.start, core.step = core.start, core.step
  return core
