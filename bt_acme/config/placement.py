"""Which machines of a cluster the nodes of a run may have.

A placement names nodes by their labels, and after each label what Ray has to
find for it:

  learner:num_gpus=1,role=trainer;actor:num_cpus=2

`num_cpus` and `num_gpus` are the cores and GPUs that Ray sets aside on the
machine; any other name is a label that the machine was given when it joined the
cluster (`ray start --labels=role=trainer`).
"""

import math
from typing import Any, Dict, Mapping, NamedTuple, Tuple

from bt_acme.config import names

# The labels of a run's nodes.
_HERE = ('coordinator', 'replay', 'learner', 'inference')
_ELSEWHERE = ('actor', 'evaluator')
LABELS = (*_HERE, *_ELSEWHERE)
_RESOURCES = ('num_cpus', 'num_gpus')


class Place(NamedTuple):
  """What a node needs of a machine.

  Attributes:
    here: whether it has to be the machine of the launcher.
    resources: cores and GPUs by Ray's name, which Ray sets aside.
    labels: labels of the machine by their names.
  """

  here: bool
  resources: Mapping[str, float] = {}
  labels: Mapping[str, str] = {}

  def options(self) -> Dict[str, Any]:
    """Returns this as the Ray driver takes it."""
    options: Dict[str, Any] = {'here': self.here, **self.resources}
    if self.labels:
      options['label_selector'] = dict(self.labels)
    return options


def parse(text: str) -> Dict[str, Place]:
  """Reads a placement.

  What it does not name is placed as follows. The coordinator, the replay, the
  learner and the inference server are on the machine of the launcher, next to
  each other and to the run's folder; actors and evaluators are spread over all
  machines, a core for each.

  Args:
    text: as in the module's description; empty for none.

  Returns:
    Places by label, for all labels.

  Raises:
    ValueError: if it cannot be read.
  """
  places = {label: Place(here=True) for label in _HERE}
  for label in _ELSEWHERE:
    places[label] = Place(here=False, resources={'num_cpus': 1.0})
  for part in filter(None, map(str.strip, text.split(';'))):
    label, _, wishes = part.partition(':')
    if label not in places:
      raise ValueError(
        f'placement={text!r} places {label!r}, which no node is called: '
        f'{names.suggest(label, LABELS)}'
      )
    places[label] = _place(text, wishes, places[label])
  return places


def _place(text: str, wishes: str, default: Place) -> Place:
  resources, labels = dict(default.resources), {}
  for wish in wishes.split(','):
    name, value = _wish(text, wish)
    if name in _RESOURCES:
      resources[name] = _amount(text, name, value)
    else:
      labels[name] = value
  return Place(here=False, resources=resources, labels=labels)


def _wish(text: str, wish: str) -> Tuple[str, str]:
  name, equals, value = (word.strip() for word in wish.partition('='))
  if not (name and equals and value):
    raise ValueError(
      f'placement={text!r} has {wish!r} where NAME=VALUE is expected: write '
      "it as in 'learner:num_gpus=1;actor:num_cpus=1,role=actor'."
    )
  return name, value


def _amount(text: str, name: str, value: str) -> float:
  try:
    amount = float(value)
  except ValueError:
    amount = math.nan
  if not 0 <= amount <= 1024:
    raise ValueError(
      f'placement={text!r} asks for {name}={value}: it must be a number in '
      '[0, 1024].'
    )
  return amount
