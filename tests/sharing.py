"""Lets equal agents of one process share what JAX compiles for them.

JAX compiles a function again for each new function object, and a learner, an
actor core or an inference server makes its own. Tests make hundreds of them for
a few agents, so here the pure functions of an agent are made once. They have no
state, so nothing passes from one test to the next.
"""

import functools

from bt_acme import learner_assembly
from bt_acme.acting import batched_core, grouped_core

_SIZE = 8  # Agents kept, so that memory stays bounded.


def share_compiled_functions(monkeypatch):
  """Makes learner cores and actor cores once for equal arguments."""
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
  # A bound method is a new object each time it is read, and JAX forgets what it
  # compiled when the object goes. These stay as long as the core.
  core.start, core.step = core.start, core.step
  return core
