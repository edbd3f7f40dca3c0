"""Assembles the learner core of an agent.

This is separate from `assembly`, which assembles actors, because the learner
core imports rlax and optax. Processes that only act do not need these packages.
"""

import jax

from bt_acme import assembly, untrusted
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


def state_shapes(
  agent: assembly.Agent, *, workdir: str
) -> learner_core.LearnerState:
  """Returns the shapes and dtypes of a learner state, without computing it.

  Args:
    agent: R2D2, NGU or BT; its settings may be from an untrusted source.
    workdir: the directory of the settings, for error messages.

  Raises:
    ValueError: if the settings do not define a valid state.
  """
  core = make_learner_core(agent)
  try:
    state = jax.eval_shape(core.init, jax.random.key(0))
  except Exception as error:  # JAX may raise any error for invalid settings.
    raise ValueError(
      f'workdir={workdir!r}: its settings do not define a valid network '
      f'({untrusted.one_line(error)}). Choose another workdir.'
    ) from error
  return learner_core.without_key(state)
