"""The learner of a run whose replay is a Reverb server."""

import contextlib
import functools
from typing import Any

import jax
from acme.utils import counting

from bt_acme.agents import acme_learner as learner_lib
from bt_acme.agents import builders as builders_lib
from bt_acme.config import run as run_config
from bt_acme.runtime import metrics_logger, node, replay_checkpoints, saver

_REPORT_SECONDS = 1.0  # Between two reports of counts to the coordinator.


def make(
  builder: builders_lib.AgentBuilder,
  initial_params: Any,
  run: run_config.RunConfig,
  context: node.Context,
  logger: metrics_logger.MetricsLogger,
  stack: contextlib.ExitStack,
) -> tuple[learner_lib.Learner, saver.Saver]:
  """Makes a learner that samples from the replay server, and its saver.

  Args:
    builder: builds the agent's learner.
    initial_params: initial parameters of the Q-network; None for random
      initialization.
    run: the run.
    context: the context, with clients of the coordinator and the replay server.
    logger: the logger of metrics.
    stack: closes the resources that the learner uses.
  """
  if run.checkpoint_replay:
    stack.enter_context(replay_checkpoints.in_use(run))
  dataset = builder.make_dataset_iterator(context.replay)
  stack.callback(dataset.stop)
  learner = builder.make_learner(
    jax.random.key(run.seed),
    None,
    dataset,
    context.replay,
    counting.Counter(context.coordinator, time_delta=_REPORT_SECONDS),
    logger=logger,
    initial_params=initial_params,
  )
  return learner, saver.Saver(
    run.checkpoint_folder,
    functools.partial(
      replay_checkpoints.take, run, builder.agent.config.replay, context.replay
    ),
    functools.partial(replay_checkpoints.clear, run),
  )
