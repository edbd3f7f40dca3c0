"""Requirements of a run's nodes for their machines in a cluster.

A placement lists the labels of nodes, each followed by its requirements:

  learner:num_gpus=1,role=trainer;actor:num_cpus=2

`num_cpus` and `num_gpus` are the cores and GPUs that Ray reserves on the
machine. Any other name is a label that the machine got when it joined the
cluster (`ray start --labels=role=trainer`).
"""

import math
from typing import Any

from bt_acme.config import names

# The labels of a run's nodes.
_HERE = ('coordinator', 'replay', 'learner', 'inference')
_ELSEWHERE = ('actor', 'evaluator')
LABELS = (*_HERE, *_ELSEWHERE)
_RESOURCES = ('num_cpus', 'num_gpus')


def parse(text: str) -> dict[str, dict[str, Any]]:
  """Parses a placement.

  By default, the coordinator, the replay, the learner and the inference server
  run on the machine of the launcher, next to the run's directory; actors and
  evaluators are spread over all machines, with one core each.

  Args:
    text: the placement in the format of the module's docstring, or an empty
      string.

  Returns:
    The requirements of each label, including labels that the text omits, as
    options of the Ray driver: `here`, whether the node must run on the machine
    of the launcher; `num_cpus` and `num_gpus`, the resources to reserve; and
    `label_selector`, the required labels of the machine.

  Raises:
    ValueError: if the text is invalid.
  """
  options: dict[str, dict[str, Any]] = {
    **{label: {'here': True} for label in _HERE},
    **{label: {'here': False, 'num_cpus': 1.0} for label in _ELSEWHERE},
  }
  for part in filter(None, map(str.strip, text.split(';'))):
    label, _, requirements = part.partition(':')
    if label not in options:
      raise ValueError(
        f'placement={text!r} contains the unknown label {label!r}: '
        f'{names.suggest(label, LABELS)}'
      )
    options[label].update(_options(text, requirements))
  return options


def _options(text: str, requirements: str) -> dict[str, Any]:
  options: dict[str, Any] = {'here': False}
  labels = {}
  for requirement in requirements.split(','):
    name, _, value = (word.strip() for word in requirement.partition('='))
    if not (name and value):
      raise ValueError(
        f'placement={text!r} contains {requirement!r} where NAME=VALUE is '
        'expected. Write a placement such as '
        "'learner:num_gpus=1;actor:num_cpus=1,role=actor'."
      )
    if name in _RESOURCES:
      options[name] = _amount(text, name, value)
    else:
      labels[name] = value
  if labels:
    options['label_selector'] = labels
  return options


def _amount(text: str, name: str, value: str) -> float:
  try:
    amount = float(value)
  except ValueError:
    amount = math.nan
  if not 0 <= amount <= 1024:
    raise ValueError(
      f'placement={text!r} contains {name}={value}, which must be a number in '
      '[0, 1024].'
    )
  return amount
