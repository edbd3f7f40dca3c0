"""The learner of an agent: its network and settings, put into the learner core.

This is the other half of `assembly`, which puts together what acts. It is a
module of its own because the learner core loads rlax and optax, which processes
that only act have no use for.
"""

import jax

from bt_acme import assembly, untrusted
from bt_acme.core import learner_core


def make_learner_core(agent: assembly.Agent) -> learner_core.LearnerCore:
  """Builds the learner of an agent.

  Args:
    agent: the agent: R2D2, NGU or BT.

  Returns:
    The learner's functions.
  """
  intrinsic = None
  if agent.intrinsic is not None:
    intrinsic = learner_core.Training(
      init=agent.intrinsic.networks.init,
      loss=agent.intrinsic.networks.sequence_loss,
      learning_rate=agent.intrinsic.config.intrinsic_learning_rate,
    )
  return learner_core.make_learner_core(
    agent.network,
    agent.config.learner,
    agent.config.replay,
    num_stacked=agent.spec.num_stacked,
    hold_flights=(
      agent.transfer is not None
      and agent.transfer.flight_recurrent_state == 'hold'
    ),
    intrinsic=intrinsic,
  )


def state_shapes(
  agent: assembly.Agent, *, workdir: str
) -> learner_core.LearnerState:
  """Returns shapes and dtypes that checkpoints hold; nothing is computed.

  Args:
    agent: R2D2, NGU or BT, whose settings may be a stranger's.
    workdir: the folder that they are from, for errors.

  Raises:
    ValueError: if there can be no such state.
  """
  core = make_learner_core(agent)
  try:
    state = jax.eval_shape(core.init, jax.random.key(0))
  except Exception as error:  # Whatever such settings make of JAX.
    raise ValueError(
      f'workdir={workdir!r}: its settings are those of no network '
      f'({untrusted.one_line(error)}): choose another workdir.'
    ) from error
  return learner_core.without_key(state)
