"""The directory of a scale and the requests made in it.

`folder.json` records the scale, version and settings of a directory. Each
distinct request, such as `table3 --seeds=0,1`, is stored in `requests/`, so
that status and data cover all requested runs.
"""

import contextlib
import dataclasses
import hashlib
import json
import pathlib
import shlex
from typing import Any

from bt_acme import files, version
from experiments.harness import runs
from experiments.paper import artifacts as artifacts_lib
from experiments.paper import required_runs, scales

_FORMAT = 1
_MARK, _REQUESTS = 'folder.json', 'requests'


@dataclasses.dataclass(frozen=True)
class Folder:
  """A directory for the runs of one scale.

  Attributes:
    path: the path of the directory.
    scale: the scale of all runs, including the user's choices.
  """

  path: pathlib.Path
  scale: scales.Scale

  @property
  def exists(self) -> bool:
    """Whether the directory has been claimed by a worker."""
    return (self.path / _MARK).exists()

  def check(self) -> None:
    """Raises ValueError if the directory cannot be used; writes nothing.

    The directory may belong to another scale, version or setting, or contain
    other files.
    """
    if self.exists:
      self._check_same()
    elif self.path.exists() and (
      not self.path.is_dir()
      # Another worker may be writing its mark.
      or not all(map(files.is_leftover, self.path.iterdir()))
    ):
      raise ValueError(
        f'folder={str(self.path)!r} is a file, or is not empty and has no '
        f'{_MARK}. Choose an empty or new directory.'
      )

  def claim(self) -> None:
    """Claims the directory for this scale, or verifies an existing claim.

    Raises:
      ValueError: if the directory cannot be used or written.
    """
    self.check()
    try:
      _write_once(self.path / _MARK, self._mark())
    except OSError as error:
      raise ValueError(f'folder: {error}. Choose another --folder.') from error
    self._check_same()

  def ask(self, request: required_runs.Request) -> None:
    """Stores a request."""
    content = request._asdict()
    text = json.dumps(content, sort_keys=True)
    name = f'{hashlib.sha256(text.encode()).hexdigest()[:8]}.json'
    _write_once(self.path / _REQUESTS / name, content)

  def requests(self) -> list[required_runs.Request]:
    """Returns all requests."""
    advice = 'Delete the file and request its artifacts again'
    paths = sorted((self.path / _REQUESTS).glob('*.json'))
    contents = (_read(path, advice) for path in paths)
    return [
      required_runs.Request(**{k: tuple(v) for k, v in content.items()})
      for content in contents
    ]

  def commands(self) -> list[str]:
    """Returns the commands that reproduce all requests."""
    scale, lines = self.scale, []
    is_default = scale.pretraining == scales.get(scale.name).pretraining
    for request in self.requests():
      values = {
        'scale': [scale.name],
        'pretraining': [] if is_default else [scale.pretraining],
        **request._asdict(),
      }
      words = ['experiments.paper', *values.pop('artifacts')]
      for name, value in values.items():
        if value:
          words.append(f'--{name}={",".join(map(str, value))}')
      words += [f'--set={n}={value}' for n, value in scale.overrides.items()]
      lines.append(f'python -m {shlex.join(words)}')
    return lines

  def specs(self) -> list[runs.RunSpec]:
    """Returns all requested runs."""
    return runs.ordered(
      spec
      for request in self.requests()
      for spec in required_runs.declared(request, self.scale)
    )

  def artifacts(self) -> tuple[str, ...]:
    """Returns all requested artifacts in the paper's order."""
    asked = {name for each in self.requests() for name in each.artifacts}
    return tuple(name for name in artifacts_lib.ARTIFACTS if name in asked)

  def _mark(self) -> dict[str, Any]:
    return {
      'format': _FORMAT,
      'version': version.__version__,
      'scale': self.scale.name,
      'pretraining_steps': self.scale.pretraining_steps,
      'transfer_steps': self.scale.transfer_steps,
      'pretraining': self.scale.pretraining,
      'settings': sorted(map(list, self.scale.overrides.items())),
    }

  def _check_same(self) -> None:
    found = _read(self.path / _MARK, 'Choose another --folder')
    # Directories of earlier versions lack the kind of pre-training.
    found = {'pretraining': scales.get(self.scale.name).pretraining, **found}
    found['settings'] = sorted(found.get('settings', []))
    differences = ', '.join(
      f'{name}={found.get(name)!r} instead of {value!r}'
      for name, value in self._mark().items()
      if found.get(name) != value
    )
    if differences:
      raise ValueError(
        f'folder={str(self.path)!r} was created with other settings: '
        f'{differences}. Choose another --folder, or the same --scale, '
        '--pretraining and --set.'
      )


def _write_once(path: pathlib.Path, content: dict[str, Any]) -> None:
  """Writes a file unless it exists; any number of workers may try."""
  with contextlib.suppress(FileExistsError):
    files.write_text(path, f'{json.dumps(content, indent=2)}\n', replaces=False)


def _read(path: pathlib.Path, advice: str) -> dict[str, Any]:
  try:
    return json.loads(path.read_text())
  except ValueError as error:
    raise ValueError(f'{path} is damaged. {advice}.') from error
