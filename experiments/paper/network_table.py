"""Figure 7 as a table: the parameters of the Q-network, as Haiku makes them.

The paper draws the network, which is that of Agent57 (Badia et al. 2020,
arXiv:2003.13350). Source: Campos et al. 2021, arXiv:2102.13515.
"""

import math
from typing import NamedTuple, Optional, Tuple

import jax

from bt_acme import config as config_lib
from bt_acme.core import networks
from bt_acme.evaluation import tables

_ATARI = (84, 84, 4)  # Four frames of gray.
_ATARI_ACTIONS = 18


class Parameter(NamedTuple):
  """One array of parameters, by the names that Haiku gives it."""

  module: str
  name: str
  shape: Tuple[int, ...]


def parameters(
  config: Optional[config_lib.NetworkConfig] = None,
  observation_shape: Tuple[int, ...] = _ATARI,
  num_actions: int = _ATARI_ACTIONS,
  num_extra_actions: int = 1,
) -> Tuple[Parameter, ...]:
  """Lists the parameters of the Q-network, without making any.

  Args:
    config: the network's settings; the paper's if not given.
    observation_shape: (H, W, C) of uint8 observations.
    num_actions: the environment's actions.
    num_extra_actions: the behaviors that may be chosen for a step.
  """
  network = networks.make_q_network(
    config or config_lib.NetworkConfig(),
    observation_shape,
    num_actions,
    num_extra_actions,
  )
  shapes = jax.eval_shape(network.init, jax.random.PRNGKey(0))
  return tuple(
    Parameter(module, name, tuple(leaf.shape))
    for module, leaves in shapes.items()
    for name, leaf in leaves.items()
  )


def texts(listed: Tuple[Parameter, ...]) -> Tuple[str, str]:
  """Lists parameters as CSV and for readers, with their sum at the end."""
  rows = [
    (
      one.module,
      one.name,
      ' x '.join(map(str, one.shape)),
      math.prod(one.shape),
    )
    for one in listed
  ]
  rows.append(('all', '', '', sum(row[-1] for row in rows)))
  header = ('module', 'parameter', 'shape', 'numbers')
  return (
    tables.csv_text([dict(zip(header, row, strict=True)) for row in rows]),
    tables.table(header, [[*row[:3], f'{row[3]:,}'] for row in rows]),
  )
