"""Figure 7 as a table of the Q-network's parameters in Haiku.

The paper shows a drawing of the network, which is the network of Agent57 (Badia
et al. 2020, arXiv:2003.13350). Source: Campos et al. 2021, arXiv:2102.13515.
"""

import math
from typing import List, Tuple

import jax

from bt_acme import config as config_lib
from bt_acme.core import networks
from bt_acme.evaluation import tables

_ATARI = (84, 84, 4)  # Four grayscale frames.
_ATARI_ACTIONS = 18


def parameters() -> List[Tuple[str, str, Tuple[int, ...]]]:
  """Lists the parameters of the paper's Q-network without allocating them.

  Returns:
    The Haiku module, name and shape of each array.
  """
  network = networks.make_q_network(
    config_lib.NetworkConfig(), _ATARI, _ATARI_ACTIONS, num_extra_actions=1
  )
  shapes = jax.eval_shape(network.init, jax.random.PRNGKey(0))
  return [
    (module, name, tuple(leaf.shape))
    for module, leaves in shapes.items()
    for name, leaf in leaves.items()
  ]


def texts() -> Tuple[str, str]:
  """Returns the parameters and their total as CSV and as a text table."""
  rows = [
    (module, name, ' x '.join(map(str, shape)), math.prod(shape))
    for module, name, shape in parameters()
  ]
  rows.append(('all', '', '', sum(row[-1] for row in rows)))
  header = ('module', 'parameter', 'shape', 'numbers')
  return (
    tables.csv_text([dict(zip(header, row, strict=True)) for row in rows]),
    tables.table(header, [[*row[:3], f'{row[3]:,}'] for row in rows]),
  )
