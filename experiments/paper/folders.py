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
import time
from typing import Any

from bt_acme import version
from experiments.harness import runs
from experiments.paper import artifacts as artifacts_lib
from experiments.paper import declarations, scales

_FORMAT = 1
_MARK, _REQUESTS = 'folder.json', 'requests'
_WRITING_SECONDS = 5.0  # Time limit for another worker to write a small file.


@dataclasses.dataclass(frozen=True)
class Folder:
  """A directory for the runs of one scale.

  Attributes:
    path: the path of the directory.
    scale: the scale of all runs, including the chosen kind of pre-training.
    settings: flags that override those of the scale.
  """

  path: pathlib.Path
  scale: scales.Scale
  settings: tuple[tuple[str, Any], ...] = ()

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
      not self.path.is_dir() or any(self.path.iterdir())
    ):
      raise ValueError(
        f'folder={str(self.path)!r} is a file, or is not empty and has no '
        f'{_MARK}. Choose an empty or new directory.'
      )

  def claim(self) -> None:
    """Claims the directory for this scale, or verifies an existing claim."""
    self.check()
    _write_once(self.path / _MARK, self._mark())
    self._check_same()

  def ask(
    self, artifacts: tuple[str, ...], choice: declarations.Selection
  ) -> None:
    """Stores a request."""
    request = {
      'artifacts': list(artifacts),
      **{name: list(getattr(choice, name)) for name in _PARTS},
    }
    text = json.dumps(request, sort_keys=True)
    name = f'{hashlib.sha256(text.encode()).hexdigest()[:8]}.json'
    _write_once(self.path / _REQUESTS / name, request)

  def requests(self) -> list[tuple[tuple[str, ...], declarations.Selection]]:
    """Returns the artifacts and choices of all requests."""
    found = []
    for path in sorted((self.path / _REQUESTS).glob('*.json')):
      request = _read(path, 'Delete the file and request its artifacts again')
      parts = {name: tuple(request[name]) for name in _PARTS}
      choice = declarations.Selection(settings=dict(self.settings), **parts)
      found.append((tuple(request['artifacts']), choice))
    return found

  def commands(self) -> list[str]:
    """Returns the commands that reproduce all requests."""
    scale, lines = self.scale, []
    is_default = scale == scales.get(scale.name)
    for artifacts, choice in self.requests():
      values = {
        'scale': scale.name,
        'pretraining': '' if is_default else scale.pretraining,
        **{n: ','.join(map(str, getattr(choice, n))) for n in _PARTS},
      }
      flags = [f'--{name}={value}' for name, value in values.items() if value]
      flags += [f'--set={name}={value}' for name, value in self.settings]
      words = ('python -m experiments.paper', *artifacts, *flags)
      lines.append(' '.join(words))
    return lines

  def specs(self) -> list[runs.RunSpec]:
    """Returns all requested runs."""
    return runs.ordered(
      spec
      for artifacts, choice in self.requests()
      for spec in declarations.declared(artifacts, self.scale, choice)
    )

  def artifacts(self) -> tuple[str, ...]:
    """Returns all requested artifacts in the paper's order."""
    asked = {name for artifacts, _ in self.requests() for name in artifacts}
    return tuple(name for name in artifacts_lib.ARTIFACTS if name in asked)

  def _mark(self) -> dict[str, Any]:
    return {
      'format': _FORMAT,
      'version': version.__version__,
      'scale': self.scale.name,
      'pretraining_steps': self.scale.pretraining_steps,
      'transfer_steps': self.scale.transfer_steps,
      'pretraining': self.scale.pretraining,
      'settings': [list(setting) for setting in self.settings],
    }

  def _check_same(self) -> None:
    found = _read(self.path / _MARK, 'Choose another --folder')
    # Directories of earlier versions lack the kind of pre-training.
    default = scales.get(self.scale.name).pretraining
    found = {'pretraining': default, **found}
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


_PARTS = ('seeds', 'games', 'arms')


def _write_once(path: pathlib.Path, content: dict[str, Any]) -> None:
  """Writes a file unless it exists; any number of workers may try."""
  path.parent.mkdir(parents=True, exist_ok=True)
  with contextlib.suppress(FileExistsError), path.open('x') as file:
    file.write(json.dumps(content, indent=2) + '\n')


def _read(path: pathlib.Path, advice: str) -> dict[str, Any]:
  end = time.monotonic() + _WRITING_SECONDS
  while True:
    try:
      return json.loads(path.read_text())
    except ValueError as error:
      if time.monotonic() > end:
        raise ValueError(f'{path} is damaged. {advice}.') from error
      time.sleep(0.1)
