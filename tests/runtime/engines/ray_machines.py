"""Two Ray nodes on this computer, as two machines of a cluster, for tests.

`python ray_machines.py LABELS...` runs in Ray's environment. It prints the
cluster's address, and lives until its standard input ends; the line `crash`
ends the second machine as a power cut would.
"""

import json
import sys

from ray import cluster_utils


def main():
  cluster = cluster_utils.Cluster()
  machines = []
  for role in ('head', 'second'):
    machines.append(
      cluster.add_node(
        num_cpus=2,
        object_store_memory=80_000_000,
        include_dashboard=False,
        labels={'role': role},
      )
    )
  cluster.wait_for_nodes()
  print(json.dumps({'address': cluster.address}), flush=True)
  for line in sys.stdin:
    if line.strip() == 'crash':
      cluster.remove_node(machines[-1], allow_graceful=False)
      print('{}', flush=True)
  cluster.shutdown()


if __name__ == '__main__':
  main()
