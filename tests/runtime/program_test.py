"""The nodes of a run, which do not depend on how they are started."""

import json

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

from bt_acme.agents import builders as builders_lib
from bt_acme.config import run as run_config
from bt_acme.runtime import executables, process_environments
from bt_acme.runtime import program as program_lib
from tests import python
from tests.agents import fakes


def make_program(**settings):
  builder = builders_lib.AgentBuilder(fakes.make_agent('r2d2'))
  run = run_config.RunConfig(envs_per_actor=2, **settings)
  return program_lib.make_program(run, builder)


def test_nodes_of_a_run():
  sizes = {'num_actors': 2, 'num_evaluators': 1}
  program = make_program(**sizes)
  servers = ['replay/0', 'coordinator/0', 'learner/0']
  actors = ['actor/0', 'actor/1']
  titles = list(executables.titles(program))
  assert titles == [*servers, *actors, 'evaluator/0']
  labels = {program_lib.MAIN_LABEL, *program_lib.CHECKED_LABELS}
  assert labels <= set(program.groups)
  # Nodes that other nodes call listen on a port.
  ports = executables.prepare(program, in_this_process=False)
  assert [title for title, num in ports.items() if num] == servers
  program = make_program(inference='server', **sizes)
  titles = list(executables.titles(program))
  assert titles == [*servers, 'inference/0', *actors, 'evaluator/0']


def test_only_learner_and_inference_see_the_accelerator():
  program = make_program(inference='server')
  variables = process_environments.for_labels(program.groups)
  assert set(variables) == set(program.groups)
  on_cpu = {k for k, v in variables.items() if v.get('JAX_PLATFORMS') == 'cpu'}
  assert on_cpu == set(program.groups) - {'learner', 'inference'}
  assert variables['actor']['OMP_NUM_THREADS'] == '1'


# Unpickles functions, as Launchpad processes do first, and prints whether each
# of them has loaded the packages of the learner.
_UNPICKLES = """
import cloudpickle, json, sys
loaded = []
for path in sys.argv[1:]:
  cloudpickle.load(open(path, 'rb'))
  loaded.append(bool({'optax', 'rlax'} & set(sys.modules)))
print(json.dumps(loaded))
"""


def test_processes_that_only_act_do_not_load_the_learner():
  program = make_program(inference='server', num_actors=1, num_evaluators=1)
  ports = executables.prepare(program, in_this_process=False)
  addresses = {
    title: [f'localhost:{1024 + i}' for i in range(num)]
    for title, num in ports.items()
  }
  commands = executables.make(program, addresses)
  paths = []
  for label in ('actor', 'evaluator', 'inference', 'learner'):
    words = commands[f'{label}/0'].command_as_list
    paths.append(words[words.index('--data_file') + 1])
  done = python.run('-c', _UNPICKLES, *paths)
  assert done.returncode == 0, done.stderr
  assert json.loads(done.stdout) == [False, False, False, True]
