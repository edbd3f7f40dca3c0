"""Assembles the learner core of an agent.

This is separate from `assembly`, which assembles actors, because the learner
core imports rlax and optax. Processes that only act do not need these packages.
"""

import jax

from bt_acme import assembly
from bt_acme.core import learner_core


def make_learner_core(agent: assembly.Agent) -> learner_core.LearnerCore:
  """Creates the learner core of an agent.

  Args:
    agent: R2D2, NGU or BT.
  """
  return learner_core.make_learner_core(
    agent.network,
    agent.config,
    num_stacked=agent.spec.num_stacked,
    transfer=agent.transfer,
    intrinsic=agent.intrinsic,
  )


def state_shapes(agent: assembly.Agent) -> learner_core.LearnerState:
  """Returns the shapes and dtypes of a learner state, without computing it."""
  core = make_learner_core(agent)
  return learner_core.without_key(jax.eval_shape(core.init, jax.random.key(0)))
