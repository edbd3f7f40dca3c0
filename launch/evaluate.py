r"""Plays episodes of an exported behavior or of a run, and films one.

  python launch/evaluate.py --behavior=runs/ngu/behavior --episodes=10 \
    --video=montezuma.mp4
  python launch/evaluate.py --workdir=runs/bt --episodes=10

Returns are the task's, whatever was maximized: for a behavior pre-trained
without rewards, this is its zero-shot score.
"""

import dataclasses
from typing import Any, Tuple

import jax
import numpy as np
from absl import flags as absl_flags

from bt_acme import assembly, behaviors, environments, learner_assembly
from bt_acme import config as config_lib
from bt_acme.agents import learner as learner_lib
from bt_acme.cli import flags
from bt_acme.cli import run as run_cli
from bt_acme.config import run as run_config
from bt_acme.evaluation import evaluator as evaluator_lib
from bt_acme.evaluation import plots
from bt_acme.evaluation import video as video_lib
from bt_acme.runtime import checkpoints

FLAGS = absl_flags.FLAGS
_SHOWN = (
  ('episode_return', 'return'),
  ('episode_length', 'actor steps'),
  ('greedy_extra_share', 'extra action'),
)
_FRAMES_PER_SECOND = 15.0


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
  """What is evaluated.

  Attributes:
    behavior: folder of an exported behavior.
    workdir: of a run, instead; its newest checkpoint is evaluated.
    env: another environment than the one it was made for; of the same
      observations and actions.
    episodes: to play.
    epsilon: of the policy; negative for the `evaluation_epsilon` it has.
    seed: of the episodes.
    video: an .mp4 file for the first episode; empty for none.
    max_video_steps: actor steps after which the video stops.
  """

  behavior: str = ''
  workdir: str = ''
  env: str = ''
  episodes: int = 10
  epsilon: float = -1.0
  seed: int = 0
  video: str = ''
  max_video_steps: int = 4_500

  def __post_init__(self) -> None:
    if bool(self.behavior) == bool(self.workdir):
      raise ValueError(
        f'behavior={self.behavior!r} and workdir={self.workdir!r}: give one of '
        'them.'
      )
    for name in ('episodes', 'max_video_steps'):
      if getattr(self, name) <= 0:
        raise ValueError(f'{name}={getattr(self, name)} must be positive.')
    if self.epsilon > 1:
      raise ValueError(f'epsilon={self.epsilon} must not exceed 1.')
    config_lib.check_finite(self)
    run_config.check_seed(self.seed)
    if self.env:
      environments.validate(self.env)


@dataclasses.dataclass(frozen=True)
class Settings:
  """All settings of this script."""

  evaluation: EvaluationConfig = EvaluationConfig(behavior='FOLDER')


def load(config: EvaluationConfig) -> Tuple[assembly.Agent, Any, Any]:
  """The agent, its variables and its statistics."""
  if config.behavior:
    behavior = behaviors.Exported(config.behavior)
    agent, variables = behavior.agent, behavior.variables
    statistics = behavior.statistics
  else:
    agent = run_cli.agent_of_run(config.workdir)
    learner = learner_assembly.make_learner_core(agent)
    template = learner.init(jax.random.key(0))
    restored = checkpoints.restore(
      run_config.RunConfig(workdir=config.workdir).checkpoint_folder, template
    )
    if restored is None:
      raise ValueError(
        f'workdir={config.workdir!r} has no checkpoint yet: let the run go on '
        'for a while.'
      )
    state, values = restored
    variables = assembly.Variables(state.params, state.intrinsic_params)
    statistics = learner_lib.saved_statistics(values['learner'])
  if config.env:
    environment = environments.make(
      config.env, num_stacked=agent.spec.num_stacked, seed=0
    )
    spec = assembly.spec_of(environment, config.env)
    environment.close()
    if spec._replace(name='') != agent.spec._replace(name=''):
      raise ValueError(
        f'env={config.env!r} has observations {spec.observation_shape} and '
        f'{spec.num_actions} actions; {agent.spec.name} had '
        f'{agent.spec.observation_shape} and {agent.spec.num_actions}.'
      )
    agent = dataclasses.replace(agent, spec=spec)
  return agent, variables, statistics


def main(argv):
  del argv
  config = flags.from_flags(Settings).evaluation
  agent, variables, statistics = load(config)
  writer = None
  if config.video:
    writer = video_lib.VideoWriter(
      config.video, frames_per_second=_FRAMES_PER_SECOND, scale=2
    )
  evaluator = evaluator_lib.Evaluator(
    agent,
    episodes=config.episodes,
    seed=config.seed,
    epsilon=config.epsilon if config.epsilon >= 0 else None,
  )

  def on_step(step, going):
    del step
    if (
      writer is not None and going[0] and writer.frames < config.max_video_steps
    ):
      writer.write(evaluator.environment.environments[0])

  rows = evaluator.run(variables, statistics, on_step=on_step)
  evaluator.close()
  cells = [
    [i, *(f'{row[name]:.3f}' for name, _ in _SHOWN)]
    for i, row in enumerate(rows)
  ]
  cells.append(
    ['mean', *(f'{np.mean([r[n] for r in rows]):.3f}' for n, _ in _SHOWN)]
  )
  print(f'{agent.spec.name}, {len(rows)} episodes')
  print(plots.table(['episode', *(title for _, title in _SHOWN)], cells))
  if writer is not None:
    writer.close()
    print(f'The video of episode 0 is {config.video} ({writer.frames} frames).')
  return 0


if __name__ == '__main__':
  flags.define(Settings)
  FLAGS.set_default('behavior', '')
  flags.run_main(main, Settings)
