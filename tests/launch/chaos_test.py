"""A short version of `make chaos`.

`tests/simulation` plays thousands of faults; tests of the engines cover real
processes that are killed, restarted or left behind.
"""

import os
import signal

import pytest

from tests.launch import chaos, scripts


@pytest.mark.slow
def test_a_run_survives_each_kind_of_fault(tmp_path):
  faults = [
    ('killed', 'actor/0'),
    ('killed', 'inference/0'),
    ('killed', 'learner/0'),
    ('killed', 'replay/0'),
    ('killed', 'coordinator/0'),
    ('told to end', 'evaluator/0'),
    ('stopped', 'actor/1'),
    ('stopped', 'learner/0'),
    (chaos.INTERRUPT, ''),
    (chaos.KILL_LAUNCHER, ''),
    (chaos.FILL_DISK, ''),  # Only root can mount a disk to fill.
  ]
  chaos.run(faults, tmp_path)


@pytest.mark.slow
def test_a_killed_actor_neither_loses_nor_repeats_scores(tmp_path):
  """Each logged episode with a flight counts once in the learned priorities."""

  def environments():
    rows = scripts.rows(tmp_path, 'actor')
    return {int(row['environment']) for row in rows}

  with scripts.Script(
    'run_bt',
    tmp_path,
    '--lp_launch_type=local_mp',
    '--behavior=uniform,action_repeat',
    '--num_actors=2',
    '--num_evaluators=0',
    '--max_actor_steps=20000',
    '--flight_priorities=learned',
    '--priority_signal=novelty',
    '--min_flight_probability=0.05',
  ) as run:
    scripts.wait_until(
      lambda: len(environments()) == 8, run.process, seconds=400
    )
    num_before = len(scripts.rows(tmp_path, 'actor'))
    (actor,) = [p for p in run.survivors() if chaos.title_of(p) == 'actor/1']
    os.kill(actor.pid, signal.SIGKILL)
    code, _, errors = run.end(seconds=800)
  assert code == 0, errors
  assert 'actor/1 was killed (SIGKILL)' in errors
  rows = scripts.rows(tmp_path, 'actor')
  assert {int(row['environment']) for row in rows[num_before:]} == {*range(8)}
  flown = [int(row['flight_behavior']) for row in rows]
  (scores,) = scripts.checkpoint(tmp_path)[1]['learner']['flight_scores']
  assert scores['counts'] == [flown.count(0), flown.count(1)]
