"""Lets equal agents in a process share compiled functions.

JAX compiles a function again for each new function object, and every learner,
actor core and inference server creates its own objects. Tests create hundreds
of them for only a few agents, so this module creates the pure functions of each
agent once. The functions have no state, so tests do not affect each other.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from bt_acme import assembly, learner_assembly
from bt_acme.acting import batched_core, grouped_core

_SIZE = 16  # The number of cached agents, which limits memory.


def share_compiled_functions(monkeypatch):
  """Creates learner cores and actor cores only once for equal arguments."""
  for replacement in _replacements():
    monkeypatch.setattr(*replacement)


@functools.cache
def _replacements():
  """Returns an object, the name of its attribute, and a value for each."""
  cached = functools.lru_cache(_SIZE)
  make_learner_core = functools.partial(
    _make_learner_core, learner_assembly.make_learner_core
  )
  shapes = cached(assembly.Agent.variable_shapes.fget)
  return [
    (learner_assembly, 'make_learner_core', cached(make_learner_core)),
    (assembly.Agent, 'variable_shapes', property(shapes)),
    *(
      (module, made.__name__, cached(functools.partial(_make_core, made)))
      for module, made in (
        (batched_core, batched_core.BatchedCore),
        (grouped_core, grouped_core.GroupedCore),
      )
    ),
  ]


def random_params(shapes, seed):
  """Returns NumPy arrays that are distributed like initial parameters.

  Compiling the initialization of an agent would take seconds.
  """
  rng = np.random.default_rng(seed)

  def draw(array):
    if len(array.shape) < 2:
      return np.zeros(array.shape, array.dtype)
    scale = np.prod(array.shape[:-1]) ** -0.5
    return rng.normal(0, scale, array.shape).astype(array.dtype)

  return jax.tree.map(draw, shapes)


def _make_learner_core(make, agent):
  core = make(agent)
  shapes = functools.cache(lambda: jax.eval_shape(core.init, jax.random.key(0)))

  def init(key, params=None):
    if isinstance(key, jax.core.Tracer):
      # A function with options of the compiler cannot be nested.
      return core.init.__wrapped__(key, params)
    state = shapes()._replace(key=())
    seed = np.asarray(jax.random.key_data(key))
    drawn = random_params((state.params, state.intrinsic_params), seed)
    params = drawn[0] if params is None else params
    state = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), state)._replace(
      params=params, target_params=params, intrinsic_params=drawn[1]
    )
    return jax.tree.map(jnp.array, state)._replace(key=key)

  return core._replace(init=init)


def _make_core(core_class, agent, **settings):
  core = core_class(agent, **settings)
  # Each access creates a new bound method, and JAX discards a compiled function
  # with its object. These methods exist as long as the core.
  core.start, core.step = core.start, core.step
  return core
