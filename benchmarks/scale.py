"""Plans the paper's run on three sets of machines, from measured costs.

  .venv/bin/python -m benchmarks.scale                      # From saved costs.
  .venv/bin/python -m benchmarks.scale --sequences=20_000   # Measures first.

The run has 256 actors with 16 environments each, 40,000 actor steps per second
and 16 billion frames. A step costs time on the cores of the actors, the
replay's and the learner's machines, and bytes on the network. The costs come
from `results.json` and from `scale.json`, which `scale_traffic.py` measures.
"""

import argparse
import functools
import json
import pathlib
from typing import NamedTuple

from bt_acme.evaluation import tables

_FOLDER = pathlib.Path(__file__).parent
_COSTS = _FOLDER / 'scale.json'
_STEPS_PER_SECOND = 40_000
_STEPS = 16_000_000_000 // 4  # A step is four frames.
_PERIOD, _BATCH = 80, 64
_GAME = 'montezuma_revenge'
_HEADER = (
  *('machines', 'used at 40,000 steps/s', 'first'),
  *('steps/s', 'hours', 'dollars'),
)


class Cluster(NamedTuple):
  """Machines of a run.

  Attributes:
    name: the name in the table.
    cores: all CPU cores.
    learner: the learner's limit in updates per second.
    server: the actor steps per second for which an inference server on the
      learner's accelerator selects actions and computes rewards; 0 if the
      actors do both. The episodic memories are where the rewards are.
    memory: bytes of memory of all hosts.
    network: bytes per second into or out of the machine of the replay and the
      learner; 0 if everything runs on one machine.
    dollars: the price per hour of all machines.
  """

  name: str
  cores: int
  learner: float
  server: float
  memory: float
  network: float
  dollars: float


def clusters(prices: argparse.Namespace) -> list[Cluster]:
  """Returns the three sets of machines, with prices and sizes from flags."""
  cpu = prices.cpu_machines
  machines, gigabit = prices.machine_cores * cpu, 1e9 / 8
  price = prices.core_hour * machines
  # NGU in docs/estimates.md: measured on an H200, with transfers; estimated for
  # a v5e, whose chips scale linearly.
  h200, v5e = 1 / 19.6e-3, 4 / 57.5e-3
  server = 59_288.0
  return [
    Cluster('H200, 16 cores', 16, h200, server, 200e9, 0, prices.h200_hour),
    # Four chips learn; their host and CPU machines act.
    Cluster(
      f'v5e-8, {cpu:g} CPU machines',
      *(224 + machines, v5e, 0, 384e9 + 4e9 * machines, 100 * gigabit),
      prices.v5e_chip_hour * 8 + price,
    ),
    Cluster(
      f'Ray: {cpu:g} CPU machines, H200',
      *(16 + machines, h200, 0, 200e9 + 4e9 * machines, 10 * gigabit),
      prices.h200_hour + price,
    ),
  ]


def loads(cluster: Cluster, costs: dict[str, float]) -> dict[str, float]:
  """Returns the used fraction of each resource at 40,000 steps per second.

  Args:
    cluster: the machines.
    costs: the costs; see `read_costs`.
  """
  updates = costs['samples_per_insert'] / _PERIOD / _BATCH  # Per step.
  act = 'emulate_s' if cluster.server else 'act_s'
  cores = costs[act] + costs['insert_s'] + costs['coordinate_s']
  cores += updates * (costs['sample_s'] + costs['decode_s'])
  step_bytes = costs['step_bytes'] + costs['parameter_bytes']
  on_accelerator = costs['episodic_bytes'] if cluster.server else 0
  accelerator = updates / cluster.learner
  if cluster.server:
    accelerator += 1 / cluster.server
  used = {
    'CPU cores': _STEPS_PER_SECOND * cores / cluster.cores,
    'learner and server': _STEPS_PER_SECOND * accelerator,
    'memory': (costs['memory_bytes'] - on_accelerator) / cluster.memory,
  }
  if cluster.network:
    used['network'] = _STEPS_PER_SECOND * step_bytes / cluster.network
  return used


def plan(cluster: Cluster, used: dict[str, float]) -> list[str]:
  """Returns a row of the table, given the result of `loads`."""
  rates = {name: share for name, share in used.items() if name != 'memory'}
  first = max(rates, key=lambda name: rates[name])
  speed = min(1.0, 1 / rates[first]) * _STEPS_PER_SECOND
  hours = _STEPS / speed / 3600
  shares = ', '.join(f'{name} {share:.0%}' for name, share in used.items())
  numbers = [f'{x:,.0f}' for x in (speed, hours, hours * cluster.dollars)]
  return [cluster.name, shares, first, *numbers]


def read_costs() -> dict[str, float]:
  """Returns seconds on a core and bytes, per step or batch; and the memory."""
  results = json.loads((_FOLDER / 'results.json').read_text())
  rows = [row for result in results.values() for row in result['rows']]
  ours = {row['name']: row['ours'] for row in rows}
  return {
    'act_s': 1 / ours['actor-ngu M=30,000'],
    'emulate_s': 1 / ours[f'env {_GAME}'] + ours['adder'] / 1e6,
    'parameter_bytes': ours['params'] * 1e6 / 1000,
    **json.loads(_COSTS.read_text()),
  }


def main() -> None:
  """Runs the command line."""
  parser = argparse.ArgumentParser(prog='python -m benchmarks.scale')
  add = functools.partial(parser.add_argument, type=float)
  add('--h200_hour', default=4.0, help='dollars per hour: H200, 16 cores')
  add('--v5e_chip_hour', default=1.2, help='dollars per hour: a v5e chip')
  add('--core_hour', default=0.04, help='dollars per hour: a CPU core')
  add('--cpu_machines', default=4, help='CPU machines of the clusters')
  add('--machine_cores', default=16, help='cores of a CPU machine')
  add('--sequences', default=0, help='sequences to write; 0 does not measure')
  options = parser.parse_args()
  if options.sequences:
    from benchmarks import scale_traffic  # Planning needs no Reverb.

    measured = scale_traffic.measure(int(options.sequences))
    _COSTS.write_text(json.dumps(measured, indent=2) + '\n')
  costs = read_costs()
  rows = [plan(cluster, loads(cluster, costs)) for cluster in clusters(options)]
  print(tables.markdown(_HEADER, rows, 'lllrrr'))


if __name__ == '__main__':
  main()
