"""Table 1 and figure 7: hyper-parameters and network, which need no runs.

Table 1 compares the paper's hyper-parameters with our defaults. Figure 7 in the
paper is a drawing of the network, which is the network of Agent57 (Badia et al.
2020, arXiv:2003.13350); here it is a table of the Q-network's parameters in
Haiku. Source: Campos et al. 2021, arXiv:2102.13515.
"""

import inspect
import math
from collections.abc import Mapping
from typing import Any

import jax
import optax

from bt_acme import config as config_lib
from bt_acme.config import names, presets
from bt_acme.core import networks
from bt_acme.evaluation import tables
from experiments.harness import runs
from experiments.paper import artifacts
from experiments.paper.table_formats import Cell, PaperTable


def table(artifact: artifacts.Artifact) -> PaperTable:
  """Makes table 1, which needs no runs."""
  rows = tables.read_csv(artifacts.DATA / 'hyperparameters.csv')
  return PaperTable(
    artifact,
    'hyper-parameter',
    ('paper', 'here', 'setting', 'agrees'),
    {row['label']: _cells(row) for row in rows},
    "The paper's values come from its appendix. Our values are the defaults "
    'with the preset `paper`.',
    tuple(f'{r["label"]}: {r["note"]}.' for r in rows if r['note']),
  )


def _cells(row: Mapping[str, str]) -> list[Cell]:
  ours = _ours(row) if row['setting'] else []
  agrees = ''
  if row['value']:
    agrees = 'yes' if all(_equal(v, row['value']) for v in ours) else 'no'
  texts = row['printed'], ', '.join(map(str, ours)), row['setting'], agrees
  return [Cell(text=text) for text in texts]


def _equal(ours: Any, printed: str) -> bool:
  return ours == printed if isinstance(ours, str) else ours == float(printed)


def _ours(row: Mapping[str, str]) -> list[Any]:
  """Returns our value of a setting, or two values if the agents differ."""
  setting = row['setting']
  if row['of'] == 'optax':
    return [inspect.signature(optax.adam).parameters[setting].default]
  values = []
  for name in row['of'].split():
    settings = runs.SETTINGS[f'run_{name}']
    config = names.build(settings, presets.get('paper', settings))
    total = {'num_environments': config.run.num_environments}
    values.append({**names.flat(config), **total}[setting])
  return list(dict.fromkeys(values))


_ATARI = (84, 84, 4)  # Four grayscale frames.
_ATARI_ACTIONS = 18


def network_texts() -> tuple[str, str]:
  """Returns the parameters of the paper's Q-network as CSV and as a text table.

  The parameters are not allocated.
  """
  network = networks.make_q_network(
    config_lib.NetworkConfig(), _ATARI, _ATARI_ACTIONS, num_extra_actions=1
  )
  shapes = jax.eval_shape(network.init, jax.random.PRNGKey(0))
  rows = [
    (module, name, ' x '.join(map(str, leaf.shape)), math.prod(leaf.shape))
    for module, leaves in shapes.items()
    for name, leaf in leaves.items()
  ]
  rows.append(('all', '', '', sum(row[-1] for row in rows)))
  header = ('module', 'parameter', 'shape', 'numbers')
  return (
    tables.csv_text([dict(zip(header, row, strict=True)) for row in rows]),
    tables.table(header, [[*row[:3], f'{row[3]:,}'] for row in rows]),
  )
