"""Reads the learned policy from the newest checkpoint of a run."""

from bt_acme import assembly, learner_assembly
from bt_acme.acting import statistics_store
from bt_acme.config import run as run_config
from bt_acme.runtime import checkpoints, old_checkpoints, saved_nodes


def read(run: run_config.RunConfig, agent: assembly.Agent) -> assembly.Learned:
  """Reads the newest checkpoint of a run.

  Raises:
    ValueError: if there is no checkpoint, or if it does not fit the agent.
  """
  shapes = learner_assembly.state_shapes(agent, workdir=run.workdir)
  # This must not write: the run may be active or belong to another user.
  old = old_checkpoints.read(run, shapes)
  restored = (
    checkpoints.restore(run.checkpoint_folder, shapes)
    if old is None
    else old[:2]
  )
  if restored is None:
    raise ValueError(
      f'workdir={run.workdir!r} has no checkpoint yet. Let the run continue '
      'until it has written one, or pass the directory of an exported behavior.'
    )
  state, values = restored
  with saved_nodes.refusals(run):  # Damaged values can raise any error.
    statistics = statistics_store.saved(values['learner'])
    actor_steps = int(values['counts'].get('actor_steps', 0))
  return assembly.Learned(
    actor_steps,
    assembly.Variables(state.params, state.intrinsic_params),
    statistics,
  )
