"""Tests that launch scripts accept the commands of all declared runs."""

import collections
import functools
from unittest import mock

import pytest
from absl import flags as absl_flags

from bt_acme import environments
from bt_acme.cli import flags
from bt_acme.config import presets
from experiments.harness import runs
from experiments.paper import artifacts, required_runs, scales

_MAP = 'MiniGrid-FourRooms-v0'
_ALL = required_runs.Request(tuple(artifacts.ARTIFACTS))


@functools.cache
def _specs(scale_name):
  return required_runs.declared(_ALL, scales.get(scale_name))


def _parse(spec):
  """Parses flags like a script but starts nothing."""
  settings_class = runs.SETTINGS[spec.script]
  values = absl_flags.FlagValues()
  with mock.patch.object(flags, 'FLAGS', values):
    absl_flags.DEFINE_string('preset', '', '', flag_values=values)
    flags.define(settings_class)
    assert values([spec.script, *spec.flags]) == [spec.script]
    name = values['preset'].value
    preset = presets.get(name, settings_class) if name else {}
    return flags.from_flags(settings_class, preset)


@pytest.mark.parametrize('scale', scales.SCALES.values(), ids=scales.SCALES)
def test_scripts_accept_all_commands(scale):
  # Commands of one arm differ only in the environment and in what they need.
  different = {
    (spec.stage, spec.arm, ':' in spec.env, *(n[::2] for n in spec.needs)): spec
    for spec in _specs(scale.name)
  }
  scripts = {spec.script for spec in different.values()}
  assert scripts == {'run_ngu', 'run_r2d2', 'run_bt', 'evaluate'}
  for spec in different.values():
    settings = _parse(spec)
    if spec.is_evaluation:
      assert settings.evaluation.episodes == scale.final_episodes
    else:
      assert settings.run.workdir == spec.workdir
      assert settings.run.max_actor_steps == spec.budget_steps
      assert settings.run.env == spec.env


@pytest.mark.parametrize('scale', scales.SCALES.values(), ids=scales.SCALES)
def test_environments_exist_and_ids_are_unique_after_dependencies(scale):
  for env in scale.envs:
    environments.validate(env)
    environments.validate(scales.pretraining_env(env))
  places = {spec.id: i for i, spec in enumerate(_specs(scale.name))}
  assert len(places) == len(_specs(scale.name))
  for spec in _specs(scale.name):
    assert all(places[need.run.id] < places[spec.id] for need in spec.needs)


def test_the_papers_runs():
  counts = collections.Counter(spec.stage for spec in _specs('paper'))
  # Three policies per game, shared by all seeds, on 57 games.
  assert counts[runs.PRETRAINING] == 171
  # Nine arms on 57 games; flights only and extra action only on 12 games;
  # seven arms on four modified tasks. fig1 adds nothing, and fig2 adds five
  # snapshots on two games.
  assert counts[runs.TRANSFER] == 3 * (9 * 57 + 2 * 12 + 4 * 7 + 5 * 2)
  assert counts[runs.FINAL_EVALUATION] == counts[runs.TRANSFER]
  for artifact, count in (('table3', 684), ('table9', 144), ('fig7', 0)):
    request = required_runs.Request((artifact,))
    found = required_runs.declared(request, scales.get('paper'))
    assert sum(spec.stage == runs.TRANSFER for spec in found) == count


@pytest.mark.parametrize(
  ('env', 'frames', 'pretraining'),
  [
    *(('hero:miners_hard', 4, 'hero'), ('pong', 4, 'pong')),
    (f'{_MAP}:fixed=1:new_cell=-0.15', 1, f'{_MAP}:no_goal'),
  ],
)
def test_environments_of_pretraining(env, frames, pretraining):
  assert runs.frames_per_step(env) == frames
  assert scales.pretraining_env(env) == pretraining


def test_a_choice_selects_a_part_of_the_runs():
  request = required_runs.Request(
    ('table3',), (7,), ('MiniGrid-Empty-8x8-v0',), ('bt_rnd',)
  )
  overrides = {'learning_rate': 0.5, 'intrinsic_reward': 'ngu'}
  rnd, bt, final = required_runs.declared(
    request, scales.get('laptop')._replace(overrides=overrides)
  )
  assert (rnd.arm, bt.arm) == ('rnd', 'bt_rnd')
  assert final.stage == runs.FINAL_EVALUATION
  assert [spec.seed for spec in (rnd, bt, final)] == [0, 7, 7]  # RND is shared.
  assert '--learning_rate=0.5' in bt.flags
  # The settings of the arm take precedence.
  assert '--intrinsic_reward=rnd' in rnd.flags


@pytest.mark.parametrize(('num_evaluators', 'is_needed'), [(1, 0), (0, 1)])
def test_runs_without_evaluators_need_a_final_one(num_evaluators, is_needed):
  overrides = {'num_evaluators': num_evaluators}
  scale = scales.get('smoke')._replace(overrides=overrides)
  request = required_runs.Request(('table9',), (0,), arms=('r2d2',))
  assert len(required_runs.declared(request, scale)) == 1 + is_needed
