"""Table 1: the paper's hyper-parameters beside our defaults."""

import inspect
from typing import Any, List, Mapping, Tuple

import optax

from bt_acme.config import agent, names, presets
from bt_acme.config import run as run_config
from experiments.paper import artifacts, published
from experiments.paper.table_model import Cell, Row, Table


def table(artifact: artifacts.Artifact) -> Table:
  """Table 1; it needs no runs."""
  rows = published.rows('hyperparameters.csv')
  return Table(
    artifact.id,
    artifact.title,
    'hyper-parameter',
    ('paper', 'here', 'setting', 'agrees'),
    tuple(_row(row) for row in rows),
    'The paper prints these in its appendix. Here are the defaults, with the '
    'preset `paper`.',
    tuple(f'{r["label"]}: {r["note"]}.' for r in rows if r['note']),
  )


def disagreements() -> List[str]:
  """The labels whose default here is not the paper's."""
  rows = published.rows('hyperparameters.csv')
  return [row['label'] for row in rows if _verdict(row) == 'no']


def _row(row: Mapping[str, str]) -> Row:
  ours = ', '.join(str(value) for value in _ours(row))
  texts = (row['printed'], ours, row['setting'], _verdict(row))
  return Row(row['label'], tuple(Cell(text=text) for text in texts))


def _verdict(row: Mapping[str, str]) -> str:
  """`yes` or `no`; empty where there is nothing to compare."""
  if not row['value']:
    return ''
  return 'yes' if all(_equal(v, row['value']) for v in _ours(row)) else 'no'


def _equal(ours: Any, printed: str) -> bool:
  return ours == printed if isinstance(ours, str) else ours == float(printed)


def _ours(row: Mapping[str, str]) -> Tuple[Any, ...]:
  """The values of a setting here: one, or two if the agents differ."""
  setting = row['setting']
  if not setting:
    return ()
  if row['of'] == 'optax':
    return (inspect.signature(optax.adam).parameters[setting].default,)
  if row['of'] == 'run':
    settings = presets.PRESETS['paper'].settings
    fields = run_config.RunConfig.__dataclass_fields__
    run = run_config.RunConfig(
      **{name: value for name, value in settings.items() if name in fields}
    )
    return (getattr(run, setting),)
  classes = {'ngu': (agent.NGUConfig,), 'bt': (agent.BTConfig,)}.get(
    row['of'], (agent.NGUConfig, agent.BTConfig)
  )
  values = [
    {**names.defaults_of(c), **presets.get('paper', c)}[setting]
    for c in classes
  ]
  return tuple(dict.fromkeys(values))
