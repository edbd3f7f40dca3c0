"""Banks: directories of behaviors that grow from run to run."""

import builtins
import os
import pathlib
import tempfile
from typing import Any

from bt_acme import behaviors, files
from bt_acme.api import card_text, loading, runs
from bt_acme.behaviors import cards, lookup
from bt_acme.config import checks
from bt_acme.launching import named_behaviors


class Bank:
  """A directory of exported behaviors, each in a directory of its name.

  `transfer` accepts a bank in place of a list of behaviors.

  Example:
    ```python
    bank = bt_acme.Bank('runs/bank')
    bank.add('minigrid-explorer', 'explorer')
    ```
  """

  def __init__(self, folder: runs.PathLike):
    """Initializes a bank.

    Args:
      folder: its directory, which `add` creates if needed.

    Raises:
      ValueError: if it is not a path, or that of a file.
    """
    self.folder = checks.path('bank', folder)
    checks.require(
      not self.folder.is_file(),
      f'bank={str(folder)!r} is a file. Pass a directory.',
    )

  def __repr__(self) -> str:
    return f'Bank({str(self.folder)!r})'

  def add(
    self, source: loading.Source, name: str, *, episodes: int = 20
  ) -> behaviors.Exported:
    """Adds the policy of a run, or a behavior, with its card.

    The card of a run of `transfer` contains the score of the exported policy,
    without further learning, and the behaviors that it learned with.

    Args:
      source: a run, a behavior, the workdir of a run, or anything that
        `load_behavior` accepts.
      name: the name of the behavior in the bank, not used before.
      episodes: the number of episodes of that score; 0 for no score.

    Returns:
      The behavior.

    Raises:
      ValueError: if the name is used or is not a name of a directory, or if the
        behavior cannot be loaded, or has other observations or actions than the
        bank.

    Example:
      ```python
      # Takes about a minute on two cores.
      run = bt_acme.transfer(
        'MiniGrid-Empty-5x5-v0', bank, max_actor_steps=3_000
      )
      bank.add(run, 'corner')
      ```
    """
    self.check_name(name)
    policy = loading.load_policy(source)
    for behavior in self.behaviors()[:1]:
      spec = policy.agent.spec
      behavior.validate(spec.observation_shape, spec.num_actions)
    self.folder.mkdir(parents=True, exist_ok=True)
    # The behavior appears in the bank together with its card.
    with tempfile.TemporaryDirectory(prefix='.', dir=self.folder) as unfinished:
      folder = pathlib.Path(unfinished) / name
      added = runs.export_policy(policy, folder)
      described: dict[str, Any] = {}
      if policy.agent.behaviors:
        described['notes'] = card_text.learned_with(policy.agent)
        if episodes:
          described |= {'envs': [policy.agent.spec.name], 'episodes': episodes}
      card_text.describe(added, **described).save(folder)
      self.check_name(name)  # Another process may have used it.
      os.rename(folder, self.folder / name)
    files.sync_folder(self.folder)
    return behaviors.Exported(str(self.folder / name), setting='bank')

  def check_name(self, name: str) -> None:
    """Raises ValueError unless a behavior of this name can be added."""
    checks.require(
      isinstance(name, str)
      and pathlib.Path(name).name == name
      and name[:1] not in ('', '.')
      and ',' not in name,
      f'name={name!r} is not a directory name, or has commas. Choose a word.',
    )
    checks.require(
      not os.path.lexists(self.folder / name),
      f'name={name!r} is used in {str(self.folder)!r}. Choose another name.',
    )

  def names(self) -> list[str]:
    """Returns the names of all behaviors, in alphabetical order.

    Example:
      ```python
      assert 'explorer' in bank.names()
      ```
    """
    return lookup.found_in(self.folder)

  def list(self) -> list[cards.Card]:
    """Returns the card of each behavior, in the order of `names`.

    Example:
      ```python
      for card in bank.list():
        print(card)
      ```
    """
    return [_card(self.folder / name) for name in self.names()]

  def behaviors(self) -> builtins.list[behaviors.Exported]:
    """Loads all behaviors, in the order of `names`.

    Example:
      ```python
      for behavior in bank.behaviors():
        print(behavior.name, behavior.actor_steps)
      ```
    """
    return named_behaviors.load_bank(self.folder) if self.names() else []


def _card(folder: pathlib.Path) -> cards.Card:
  """Returns the card in the directory of a behavior, or a new one."""
  try:
    return cards.read(folder)
  except FileNotFoundError:
    return card_text.describe(folder)
