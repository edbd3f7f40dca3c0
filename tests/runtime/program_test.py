"""The nodes of a run, which do not depend on how they are started."""

import json
from unittest import mock

from bt_acme.agents import builders as builders_lib
from bt_acme.config import run as run_config
from bt_acme.runtime import environment_variables, executables
from bt_acme.runtime import program as program_lib
from tests import python
from tests.agents import fakes


def make_program(**settings):
  builder = builders_lib.AgentBuilder(fakes.make_agent('r2d2'))
  run = run_config.RunConfig(envs_per_actor=2, **settings)
  return program_lib.make_program(run, builder)


def test_nodes_of_a_run():
  program = make_program(num_actors=3, num_evaluators=2)
  ports = executables.prepare(program, in_this_process=False)
  servers = ['replay/0', 'coordinator/0', 'learner/0']
  actors = ['actor/0', 'actor/1', 'actor/2']
  assert list(ports) == [*servers, *actors, 'evaluator/0', 'evaluator/1']
  rules = program_lib.rules(run_config.RunConfig(), make_program)
  assert {rules.main_label, *rules.checked_labels} <= set(program.groups)
  # Nodes that other nodes call listen on a port.
  assert [title for title, num in ports.items() if num] == servers


def test_an_inference_server_is_an_additional_node():
  program = make_program(inference='server', num_actors=1, num_evaluators=0)
  titles = list(executables.prepare(program, in_this_process=False))
  assert titles[-2:] == ['inference/0', 'actor/0'] and len(titles) == 5


def test_only_learner_and_inference_see_the_accelerator():
  program = make_program(inference='server')
  variables = environment_variables.by_label()
  assert set(variables) == set(program.groups)
  on_cpu = {k for k, v in variables.items() if v.get('JAX_PLATFORMS') == 'cpu'}
  assert on_cpu == set(program.groups) - {'learner', 'inference'}
  assert variables['actor']['OMP_NUM_THREADS'] == '1'


def test_each_machine_has_a_cache_of_its_own(monkeypatch):
  enable = mock.Mock()
  monkeypatch.setattr(executables.compilation_cache, 'enable', enable)
  monkeypatch.setattr(executables.lp, 'register_stop_handler', mock.Mock())
  executables.make_node(mock.Mock())
  enable.assert_called_once_with()
  by_label = environment_variables.by_label()
  assert not any('CACHE' in name for x in by_label.values() for name in x)


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
  done = python.check('-c', _UNPICKLES, *paths)
  assert json.loads(done.stdout) == [False, False, False, True]
