"""Table 1: the paper's hyper-parameters compared with our defaults."""

import inspect
from typing import Any, List, Mapping

import optax

from bt_acme.config import agent, names, presets
from bt_acme.config import run as run_config
from experiments.paper import artifacts, data_files
from experiments.paper.table_formats import Cell, PaperTable, TableRow

_AGENTS = {
  'ngu': (agent.NGUConfig,),
  'bt': (agent.BTConfig,),
  'both': (agent.NGUConfig, agent.BTConfig),
}


def table(artifact: artifacts.Artifact) -> PaperTable:
  """Makes table 1, which needs no runs."""
  rows = data_files.rows('hyperparameters.csv')
  return PaperTable(
    artifact.id,
    artifact.title,
    'hyper-parameter',
    ('paper', 'here', 'setting', 'agrees'),
    tuple(_row(row) for row in rows),
    "The paper's values come from its appendix. Our values are the defaults "
    'with the preset `paper`.',
    tuple(f'{r["label"]}: {r["note"]}.' for r in rows if r['note']),
  )


def _row(row: Mapping[str, str]) -> TableRow:
  ours = _ours(row) if row['setting'] else []
  agrees = ''
  if row['value']:
    agrees = 'yes' if all(_equal(v, row['value']) for v in ours) else 'no'
  here = ', '.join(map(str, ours))
  texts = (row['printed'], here, row['setting'], agrees)
  return TableRow(row['label'], tuple(Cell(text=text) for text in texts))


def _equal(ours: Any, printed: str) -> bool:
  return ours == printed if isinstance(ours, str) else ours == float(printed)


def _ours(row: Mapping[str, str]) -> List[Any]:
  """Returns our value of a setting, or two values if the agents differ."""
  setting = row['setting']
  if row['of'] == 'optax':
    return [inspect.signature(optax.adam).parameters[setting].default]
  if row['of'] == 'run':
    settings = presets.PRESETS['paper'].settings
    known = settings.keys() & run_config.RunConfig.__dataclass_fields__
    run = run_config.RunConfig(**{name: settings[name] for name in known})
    return [getattr(run, setting)]
  values = [
    {**names.defaults_of(c), **presets.get('paper', c)}[setting]
    for c in _AGENTS[row['of']]
  ]
  return list(dict.fromkeys(values))
