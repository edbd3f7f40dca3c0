"""Tests dm-acme's DQN, alone and with behavior transfer."""

import dataclasses
import re

import pytest

from experiments.harness import small_runs

ENV = '--env=MiniGrid-Empty-5x5-v0'


def test_progress_and_result_are_printed(server):
  code, output, errors = server.run(
    *('run_acme_dqn', ENV, '--behavior= minigrid-explorer', '--episodes=3'),
    '--max_actor_steps=2000',
  )
  assert code == 0, errors
  line = r'actor steps 2,0\d\d: solved \d+ of the last 20 episodes\n'
  end = r'Without flights, DQN solves \d of 3 episodes\.\n'
  assert re.fullmatch(line + end, output)


@pytest.mark.parametrize(
  'flag, message',
  [
    ('--env=pong', "env='pong' is not an environment of MiniGrid"),
    ('--behavior=nope', "behavior='nope' is neither a directory"),
    ('--behavior=uniform --choice_rule=boltzmann', 'needs an agents.R2D2Build'),
    ('--flight_exponent=2', 'flight_exponent=2.0 has no effect without a beh'),
  ],
)
def test_bad_input(server, flag, message):
  code, output, errors = server.run('run_acme_dqn', ENV, *flag.split())
  assert code == 2 and not output
  assert errors.startswith('error: ') and message in errors


@pytest.mark.parametrize('behavior', [None, 'uniform'])
def test_a_run_of_an_experiment_has_its_settings(behavior, tmp_path):
  run = small_runs.SmallRun(
    *('DQN', 'dqn', ENV.partition('=')[2], 200), behavior=behavior, episodes=2
  )
  other = dataclasses.replace(run, settings={'flight_exponent': 1.5})
  assert run.hash != other.hash
  steps = []
  other.call(tmp_path)(steps.append)
  episodes, row = map(other.result(tmp_path).get, ('episodes', 'row'))
  assert episodes['actor_steps'] == steps and 200 <= steps[-1] < 300
  assert row['solved'] in (0, 0.5, 1) and row['half_solved'] == 200
  mean = sum(episodes['episode_return']) / len(steps)
  assert row['training_return'] == pytest.approx(mean)
  if behavior:  # It and the settings reach BTBuilder.
    wrong = dataclasses.replace(run, settings={'choice_rule': 'boltzmann'})
    with pytest.raises(ValueError, match='needs an agents.R2D2Builder'):
      wrong.call(tmp_path)(steps.append)
