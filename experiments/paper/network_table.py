"""Figure 7 as a table: the parameters of the Q-network, as Haiku makes them.

The paper draws the network, which is that of Agent57 (Badia et al. 2020,
arXiv:2003.13350). Source: Campos et al. 2021, arXiv:2102.13515.
"""

import csv
import io
import math
from typing import NamedTuple, Optional, Tuple

import jax

from bt_acme import config as config_lib
from bt_acme.core import networks
from bt_acme.evaluation import tables

_HEADER = ('module', 'parameter', 'shape', 'numbers')
_ATARI = (84, 84, 4)  # Four frames of gray.
_ATARI_ACTIONS = 18


class Parameter(NamedTuple):
  """One array of parameters, by the names that Haiku gives it."""

  module: str
  name: str
  shape: Tuple[int, ...]

  @property
  def size(self) -> int:
    """How many numbers it holds."""
    return math.prod(self.shape)


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


def as_text(listed: Tuple[Parameter, ...]) -> str:
  """Lays the parameters out for a terminal, with their sum at the end."""
  rows = [[*row[:3], f'{row[3]:,}'] for row in _rows(listed)]
  return tables.table(_HEADER, rows)


def as_csv(listed: Tuple[Parameter, ...]) -> str:
  """Writes the parameters as CSV, with their sum at the end."""
  text = io.StringIO()
  writer = csv.writer(text, lineterminator='\n')
  writer.writerows([_HEADER, *_rows(listed)])
  return text.getvalue()


def _rows(
  listed: Tuple[Parameter, ...],
) -> Tuple[Tuple[str, str, str, int], ...]:
  total = sum(parameter.size for parameter in listed)
  return (
    *(
      (one.module, one.name, ' x '.join(map(str, one.shape)), one.size)
      for one in listed
    ),
    ('all', '', '', total),
  )
