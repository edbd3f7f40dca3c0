"""A pre-trained policy as a folder on the disk, written and read.

The folder holds `behavior.json` (configuration, environment, running
statistics, a checksum) and `params.npz`. It is moved into place once it is
complete.
"""

import hashlib
import io
import json
import os
import pathlib
from typing import Any, Dict, Mapping, NamedTuple, Optional

import jax
import numpy as np

from bt_acme import assembly, files
from bt_acme import config as config_lib
from bt_acme.core import weight_transfer

_FORMAT = 1
_CARD, _PARAMS = 'behavior.json', 'params.npz'
_SEPARATOR = '::'
_CONFIGS = {
  'R2D2Config': config_lib.R2D2Config,
  'NGUConfig': config_lib.NGUConfig,
}


class Policy(NamedTuple):
  """What the folder holds.

  Attributes:
    agent: the agent that the policy was in training.
    variables: the agent's parameters, NumPy arrays.
    statistics: the statistics of its intrinsic reward, float64 []; None without
      one.
    actor_steps: the number of actor steps that it was trained for.
    params_sha256: the checksum of the file of its parameters.
  """

  agent: assembly.Agent
  variables: assembly.Variables
  statistics: Optional[Any]
  actor_steps: int
  params_sha256: str


def export(
  folder: str,
  *,
  agent: assembly.Agent,
  variables: assembly.Variables,
  statistics: Optional[Any],
  actor_steps: int,
) -> None:
  """Writes a behavior, replacing one that is there.

  Args:
    folder: where to write it.
    agent: an agent that is R2D2 or NGU.
    variables: the agent's parameters.
    statistics: the statistics of its intrinsic reward, merged over its
      environments; None without one.
    actor_steps: the number of actor steps that it was trained for.
  """
  params = _as_file(variables)
  with files.new_folder(folder) as temporary:
    (temporary / _PARAMS).write_bytes(params)
    card = {
      'format': _FORMAT,
      'agent': type(agent.config).__name__,
      'config': config_lib.to_dict(agent.config),
      'environment': agent.spec._asdict(),
      'statistics': None
      if statistics is None
      else {k: np.asarray(v).tolist() for k, v in statistics._asdict().items()},
      'actor_steps': int(actor_steps),
      'params_sha256': hashlib.sha256(params).hexdigest(),
    }
    (temporary / _CARD).write_text(json.dumps(card, indent=2) + '\n')


def read_checksum(folder: str) -> str:
  """Returns the checksum in a folder that `read` has found to be whole."""
  card = json.loads((pathlib.Path(folder) / _CARD).read_text())
  return str(card['params_sha256'])


def checksum(variables: assembly.Variables) -> str:
  """Returns the SHA-256 that a behavior with these parameters would have.

  Args:
    variables: the parameters of any agent.
  """
  return hashlib.sha256(_as_file(variables)).hexdigest()


def _as_file(variables: assembly.Variables) -> bytes:
  """Returns what the file of the parameters holds."""
  buffer = io.BytesIO()
  params = {'agent': variables.agent, 'intrinsic': variables.intrinsic}
  np.savez(buffer, **_flatten(params))
  return buffer.getvalue()


def read(folder: str, *, setting: str) -> Policy:
  """Reads and checks a folder that `export` wrote.

  Args:
    folder: the folder to read.
    setting: the name of the user's setting for the folder, for errors.

  Raises:
    ValueError: if the folder is missing, incomplete or damaged.
  """
  path = pathlib.Path(folder)
  subject = f'{setting}={folder!r}'
  for name in (_CARD, _PARAMS):
    if not os.path.isfile(path / name):
      raise ValueError(
        f'{subject} has no {name}: name a folder that run_ngu.py exported '
        'whole.'
      )
  try:
    card = json.loads((path / _CARD).read_text())
    file_format = card['format']
    if file_format == _FORMAT:
      policy = _read_card(card)
      # The parameters that such an agent has; nothing is computed.
      expected = jax.eval_shape(lambda: _fresh_params(policy.agent))
  except (ValueError, KeyError, TypeError, AttributeError) as error:
    raise ValueError(
      f'{subject}: {_CARD} is damaged ({type(error).__name__}: {error}); '
      'export it again.'
    ) from error
  if file_format != _FORMAT:
    raise ValueError(
      f'{subject} has format {file_format!r}; this version reads {_FORMAT}: '
      'export it again.'
    )
  params_bytes = (path / _PARAMS).read_bytes()
  if hashlib.sha256(params_bytes).hexdigest() != policy.params_sha256:
    raise ValueError(
      f'{subject}: {_PARAMS} is incomplete or damaged (its checksum differs); '
      'export it again.'
    )
  params = _read_params(path / _PARAMS, expected, subject)
  return policy._replace(
    variables=assembly.Variables(params['agent'], params['intrinsic'])
  )


def is_whole(folder: str) -> bool:
  """Returns whether the folder holds a behavior, with all of its parameters.

  It loads nothing, so that a process without an agent may ask.
  """
  path = pathlib.Path(folder)
  try:
    params = (path / _PARAMS).read_bytes()
    card = json.loads((path / _CARD).read_text())
    return bool(hashlib.sha256(params).hexdigest() == card['params_sha256'])
  except (OSError, ValueError, KeyError, TypeError):
    return False


def _read_card(card: Mapping[str, Any]) -> Policy:
  """Returns what the card says, without variables.

  It raises whatever error a damaged card happens to cause.
  """
  spec = card['environment']
  shape = tuple(int(size) for size in spec['observation_shape'])
  agent = assembly.Agent(
    config_lib.from_dict(_CONFIGS[card['agent']], card['config']),
    assembly.EnvironmentSpec(**{**spec, 'observation_shape': shape}),
  )
  return Policy(
    agent=agent,
    variables=assembly.Variables({}, {}),
    statistics=_read_statistics(agent, card['statistics']),
    actor_steps=int(card['actor_steps']),
    params_sha256=str(card['params_sha256']),
  )


def _read_statistics(
  agent: assembly.Agent, values: Optional[Mapping[str, Any]]
) -> Optional[Any]:
  if values is None:
    return None
  if agent.intrinsic is None:
    raise ValueError('statistics of an agent without intrinsic reward')
  statistics = agent.intrinsic.reward.statistics_class(
    **{name: np.float64(value) for name, value in values.items()}
  )
  for name, value in statistics._asdict().items():
    if not (np.ndim(value) == 0 and np.isfinite(value)):
      raise ValueError(f'{name} is {value}, and must be a finite number')
  return statistics


def _read_params(
  path: pathlib.Path, expected: Mapping[str, Any], subject: str
) -> Mapping[str, Any]:
  """Reads parameters and checks them against the expected shapes and dtypes."""
  with np.load(path) as params:
    tree = {'agent': {}, 'intrinsic': {}, **_unflatten(dict(params))}
  differences = weight_transfer.mismatches(tree, expected)
  if differences:
    raise ValueError(
      f'{subject}: {_PARAMS} does not fit {_CARD}: {differences}: export it '
      'again.'
    )
  if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)):
    raise ValueError(
      f'{subject}: {_PARAMS} holds values that are not finite: train it anew.'
    )
  return tree


def _fresh_params(agent: assembly.Agent) -> Dict[str, Any]:
  """Initializes parameters, arranged as those of the file are."""
  key, intrinsic = jax.random.key(0), agent.intrinsic
  return {
    'agent': agent.network.init(key),
    'intrinsic': {} if intrinsic is None else intrinsic.networks.init(key),
  }


def _flatten(tree: Mapping[str, Any], prefix: str = '') -> Dict[str, Any]:
  """Turns nested dicts of arrays into one, whose names are paths."""
  flat = {}
  for name, value in tree.items():
    if isinstance(value, Mapping):
      flat.update(_flatten(value, f'{prefix}{name}{_SEPARATOR}'))
    else:
      flat[prefix + name] = np.asarray(value)
  return flat


def _unflatten(flat: Mapping[str, np.ndarray]) -> Dict[str, Any]:
  """Undoes `_flatten`."""
  tree: Dict[str, Any] = {}
  for path, value in flat.items():
    *parents, name = path.split(_SEPARATOR)
    node = tree
    for parent in parents:
      node = node.setdefault(parent, {})
    node[name] = value
  return tree
