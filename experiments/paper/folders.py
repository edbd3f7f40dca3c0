"""The folder of a scale: what it is for, and what was asked of it.

`folder.json` says which scale, version and settings a folder belongs to. Each
distinct request, such as `table3 --seeds=0,1`, is kept in `requests/`, so that
status and data are about all that was asked for.
"""

import dataclasses
import hashlib
import json
import pathlib
import time
from typing import Any, Dict, List, Tuple

from bt_acme import version
from experiments.harness import runs
from experiments.paper import artifacts as artifacts_lib
from experiments.paper import declarations, scales

_FORMAT = 1
_MARK, _REQUESTS = 'folder.json', 'requests'
_WRITING_SECONDS = 5.0  # What another worker may take to write a few bytes.


@dataclasses.dataclass(frozen=True)
class Folder:
  """A folder, with what is made in it.

  Attributes:
    path: where it is.
    scale: the scale of all its runs, with the pre-training that was chosen.
    settings: flags over those of the scale.
  """

  path: pathlib.Path
  scale: scales.Scale
  settings: Tuple[Tuple[str, Any], ...] = ()

  @property
  def exists(self) -> bool:
    """Whether anything was begun here."""
    return (self.path / _MARK).exists()

  def check(self) -> None:
    """Raises ValueError if the folder is of another scale, version, kind.

    Nothing is written.
    """
    if self.exists:
      self._check_same(self._read_mark())
    elif self.path.exists() and not self.path.is_dir():
      raise ValueError(f'folder={str(self.path)!r} is a file: choose a folder.')
    elif self.path.is_dir() and any(self.path.iterdir()):
      raise ValueError(
        f'folder={str(self.path)!r} is not empty and has no {_MARK}: choose an '
        'empty or new folder.'
      )

  def claim(self) -> None:
    """Makes the folder this scale's, or recognizes it as such."""
    self.check()
    _write_once(self.path / _MARK, self._mark())
    self._check_same(self._read_mark())

  def ask(
    self, artifacts: Tuple[str, ...], choice: declarations.Choice
  ) -> None:
    """Keeps a request."""
    request = {
      'artifacts': list(artifacts),
      **{name: list(getattr(choice, name)) for name in _PARTS},
    }
    text = json.dumps(request, sort_keys=True)
    name = f'{hashlib.sha256(text.encode()).hexdigest()[:8]}.json'
    _write_once(self.path / _REQUESTS / name, request)

  def requests(self) -> List[Tuple[Tuple[str, ...], declarations.Choice]]:
    """Returns the artifacts and choices of all requests."""
    found = []
    for path in sorted((self.path / _REQUESTS).glob('*.json')):
      request = _read(path, 'remove it, and ask for its artifacts again')
      parts = {name: tuple(request[name]) for name in _PARTS}
      choice = declarations.Choice(settings=dict(self.settings), **parts)
      found.append((tuple(request['artifacts']), choice))
    return found

  def commands(self) -> List[str]:
    """Returns what to type in order to make all that was asked for."""
    return [
      ' '.join(
        [
          *('python -m experiments.paper', *artifacts),
          f'--scale={self.scale.name}',
          *self._pretraining_flag(),
          *(
            f'--{name}={",".join(map(str, getattr(choice, name)))}'
            for name in _PARTS
            if getattr(choice, name)
          ),
          *(f'--set={name}={value}' for name, value in self.settings),
        ]
      )
      for artifacts, choice in self.requests()
    ]

  def specs(self) -> List[runs.RunSpec]:
    """Returns all runs that were asked for."""
    return runs.ordered(
      spec
      for artifacts, choice in self.requests()
      for spec in declarations.declared(artifacts, self.scale, choice)
    )

  def artifacts(self) -> Tuple[str, ...]:
    """Returns the artifacts that were asked for, in the paper's order."""
    asked = {name for artifacts, _ in self.requests() for name in artifacts}
    return tuple(name for name in artifacts_lib.ARTIFACTS if name in asked)

  def _pretraining_flag(self) -> List[str]:
    """Returns the flag, unless the scale is so by itself."""
    if self.scale == scales.get(self.scale.name):
      return []
    return [f'--pretraining={self.scale.pretraining}']

  def _read_mark(self) -> Dict[str, Any]:
    return _read(self.path / _MARK, 'choose another --folder')

  def _mark(self) -> Dict[str, Any]:
    return {
      'format': _FORMAT,
      'version': version.__version__,
      'scale': self.scale.name,
      'pretraining_steps': self.scale.pretraining_steps,
      'transfer_steps': self.scale.transfer_steps,
      'pretraining': self.scale.pretraining,
      'settings': [list(setting) for setting in self.settings],
    }

  def _check_same(self, there: Dict[str, Any]) -> None:
    here = self._mark()
    # Folders that do not say so have what their scale has by itself.
    own = scales.get(self.scale.name).pretraining
    there = {'pretraining': own, **there}
    differences = ', '.join(
      f'{name}={there.get(name)!r} there and {value!r} here'
      for name, value in here.items()
      if there.get(name) != value
    )
    if differences:
      raise ValueError(
        f'folder={str(self.path)!r} belongs to something else: {differences}. '
        'Choose another --folder, or the same --scale, --pretraining and --set.'
      )


_PARTS = ('seeds', 'games', 'arms')


def _write_once(path: pathlib.Path, content: Dict[str, Any]) -> None:
  """Writes a file unless it is there; any number of workers may try."""
  path.parent.mkdir(parents=True, exist_ok=True)
  try:
    with path.open('x') as file:
      file.write(json.dumps(content, indent=2) + '\n')
  except FileExistsError:
    pass


def _read(path: pathlib.Path, advice: str) -> Dict[str, Any]:
  end = time.monotonic() + _WRITING_SECONDS
  while True:
    try:
      content: Dict[str, Any] = json.loads(path.read_text())
      return content
    except ValueError as error:
      if time.monotonic() > end:
        raise ValueError(f'{path} is damaged: {advice}.') from error
      time.sleep(0.1)
