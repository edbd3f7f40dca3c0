"""Two Ray nodes on this computer that simulate two machines of a cluster.

`python ray_machines.py` runs in Ray's environment. The script prints the
cluster's address, and runs until its standard input ends. The input line
`crash` ends the second machine like a power cut.
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
