"""Runs on three simulated machines that lose their network or power."""

import collections
import contextlib
import re
import signal
import time

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

from tests.launch import crowd, scripts
from tests.launch import machines as machines_lib

pytestmark = pytest.mark.slow
_ACTORS = 3
# The head alone can run all actors.
_CPUS = _ACTORS
_BLIP_SECONDS = 5.0


@pytest.fixture(name='machines')
def start_machines():
  missing = machines_lib.missing()
  if missing:
    # tests/runtime/engines/ray_cluster_test.py has two machines on loopback.
    pytest.skip(f'needs {missing}')
  with contextlib.closing(machines_lib.Machines(3, num_cpus=_CPUS)) as machines:
    yield machines


def test_many_nodes_survive_the_loss_of_a_machine():
  if machines_lib.missing():
    pytest.skip(f'needs {machines_lib.missing()}')
  assert 'restart of the nodes of a crashed machine' in crowd.run(12)


def _hosts(workdir):
  """Returns the machines of each actor's attempts, from the actor's log."""
  found = {}
  for i in range(_ACTORS):
    path = workdir / 'processes' / f'actor-{i}.log'
    text = path.read_text() if path.exists() else ''
    found[i] = re.findall(r'^--- .*, a process on (.*)$', text, re.M)
  return found


def _episodes(workdir):
  """Returns the number of episodes of each actor with its four environments."""
  return collections.Counter(
    int(row['environment']) // 4 for row in scripts.rows(workdir, 'actor')
  )


def test_a_run_survives_its_machines(machines, tmp_path):
  workdir = tmp_path / 'run'
  with scripts.Script(
    'run_ngu',
    workdir,
    *scripts.NGU,
    *machines_lib.flags(machines.address),
    f'--num_actors={_ACTORS}',
    '--num_evaluators=0',
    '--max_actor_steps=1000000',
    '--watchdog_seconds=60',
    environment=machines_lib.VARIABLES,
    prefix=machines.command_on(0),
  ) as script:

    def wait_until_all_act():
      before = _episodes(workdir)
      learner = len(scripts.rows(workdir, 'learner'))
      scripts.wait_until(
        lambda: (
          all(_episodes(workdir)[i] > before[i] + 4 for i in range(_ACTORS))
          and len(scripts.rows(workdir, 'learner')) > learner
        ),
        script.process,
        seconds=400,
      )

    wait_until_all_act()
    before = _hosts(workdir)
    machine_of = {machines.host(i): i for i in range(3)}
    assert sorted(before.values()) == sorted([host] for host in machine_of)
    actor_on = {machine_of[host]: actor for actor, (host,) in before.items()}
    # No node fails when the network is back soon.
    machines.cut(1)
    time.sleep(_BLIP_SECONDS)
    machines.mend(1)
    wait_until_all_act()
    assert _hosts(workdir) == before
    # Actors of a machine without power or network restart elsewhere.
    for machine, lose in ((2, machines.crash), (1, machines.cut)):
      lose(machine)
      scripts.wait_until(
        lambda: len(_hosts(workdir)[actor_on[machine]]) == 2,  # noqa: B023
        script.process,
        seconds=200,
      )
      wait_until_all_act()
    assert len(_hosts(workdir)[actor_on[0]]) == 1
    script.process.send_signal(signal.SIGINT)
    code, _, errors = script.end()
  assert code == 130, errors
  # Only Ray itself is left on the head.
  left = machines.processes(0).values()
  assert left and not [text for text in left if 'process_entry' in text]
  assert list((workdir / 'checkpoints').glob('checkpoint-*'))
