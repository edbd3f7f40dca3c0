"""Tests the behaviors that come with the package."""

import dataclasses
import pathlib

import pytest

import bt_acme
from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.behaviors import cards, lookup
from bt_acme.launching import named_behaviors, starting
from tests.agents import fakes

_NAME = 'minigrid-explorer'


def test_a_name_stands_for_a_directory_unless_one_has_that_name(
  tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  assert _NAME in bt_acme.behaviors.list()
  assert pathlib.Path(lookup.resolve(_NAME), 'behavior.json').is_file()
  assert lookup.resolve('other') == 'other'
  (tmp_path / _NAME).touch()
  assert lookup.resolve(_NAME) != _NAME
  (tmp_path / _NAME).unlink()
  (tmp_path / _NAME / 'behavior').mkdir(parents=True)
  assert lookup.resolve(_NAME) == _NAME
  (tmp_path / _NAME / 'config.json').touch()  # The workdir of a run.
  assert lookup.resolve(_NAME) == f'{_NAME}/behavior'


def test_a_star_import_keeps_the_builtin_list():
  namespace = {}
  exec('from bt_acme.behaviors import *', namespace)
  assert 'Exported' in namespace and 'list' not in namespace


@pytest.mark.parametrize('name', behaviors.list())
def test_each_loads_and_has_its_card(name):
  loaded = bt_acme.load_behavior(name)
  (made,) = named_behaviors.make(name, config_lib.TransferConfig())
  assert loaded.name == made.name == name
  card = cards.read(pathlib.Path(loaded.folder))
  for block in bt_acme.describe(name).markdown.strip().split('\n\n'):
    assert block in card.markdown
  assert card.pictures and all(map(len, card.pictures.values()))
  page = pathlib.Path(loaded.folder, 'card.html').read_text()
  assert cards.Card(card.markdown)._repr_html_() in page


@pytest.mark.parametrize('name', behaviors.list())
def test_the_command_of_each_card_passes_all_checks(name, monkeypatch):
  card = bt_acme.describe(name).markdown
  command = card.partition('```python\n')[2].partition('run.export')[0]
  checked = []

  def check_only(run, agent, **_):
    starting.check(run, agent)
    checked.append(agent.config)
    raise KeyboardInterrupt

  monkeypatch.setattr(starting, 'start', check_only)
  with pytest.raises(KeyboardInterrupt):
    exec(command, {'bt_acme': bt_acme})
  assert checked == [bt_acme.load_behavior(name).agent.config]


def test_the_command_of_a_launched_run_suits_one_process(tmp_path):
  config = fakes.make_config(config_lib.R2D2Config)
  replay = dataclasses.replace(config.replay, codec='tensors')
  config = dataclasses.replace(config, replay=replay)
  fakes.export_agent(tmp_path / 'b', assembly.Agent(config, fakes.SPEC))
  assert 'codec' not in bt_acme.describe(tmp_path / 'b').markdown
