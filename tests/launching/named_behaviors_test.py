"""Tests behaviors that are selected by name."""

import shutil

import pytest

from bt_acme import behaviors
from bt_acme import config as config_lib
from bt_acme.launching import named_behaviors

TRANSFER = config_lib.TransferConfig()


def test_behaviors_by_name(exported):
  config = named_behaviors.BehaviorsConfig(f' uniform, {exported} ', ' 1, 2')
  made = named_behaviors.make(config.behavior, TRANSFER)
  assert [behavior.name for behavior in made] == ['uniform', 'b']
  assert config.weights == (1, 2)
  assert named_behaviors.BehaviorsConfig('uniform').weights == ()


@pytest.mark.parametrize(
  'names, wrong', [('Uniform', 'Uniform'), ('uniform,', ''), ('', '')]
)
def test_an_unknown_name(names, wrong):
  message = f"behavior={wrong!r} is neither .*'action_repeat', 'uni"
  with pytest.raises(ValueError, match=message):
    named_behaviors.make(names, TRANSFER)


def test_your_own_behavior_has_its_own_name():
  def uniform(seed):
    return lambda *_: 1

  class Renamed(behaviors.Uniform):
    name = 'action_repeat'

  built_in = [behaviors.Uniform(), behaviors.ActionRepeat()]
  assert list(named_behaviors.make(built_in, TRANSFER)) == built_in
  named_behaviors.make(behaviors.FromCallable(uniform, 'mine'), TRANSFER)
  for own in (behaviors.FromCallable(uniform), Renamed()):
    with pytest.raises(ValueError, match=f'^name={own.name!r} is that of a b'):
      named_behaviors.make([own], TRANSFER)
  with pytest.raises(ValueError, match='name=7 must be a string'):
    named_behaviors.make(behaviors.FromCallable(uniform, 7), TRANSFER)


@pytest.mark.parametrize('weights', ['1,,2', 'x'])
def test_weights_that_are_not_numbers(weights):
  with pytest.raises(ValueError, match='must be numbers separated by'):
    named_behaviors.BehaviorsConfig('uniform', weights).weights  # noqa: B018


def test_the_behaviors_of_a_bank(exported, tmp_path):
  # The last one is left by an export that was killed.
  for name in ('second', 'first', '.first.partial-50092aef'):
    shutil.copytree(exported, tmp_path / 'a,bank' / name)
  (tmp_path / 'a,bank' / 'other').mkdir()
  bank = str(tmp_path / 'a,bank')
  for given, own in (('', []), ('uniform', ['uniform'])):
    config = named_behaviors.BehaviorsConfig(given, bank=bank)
    made = named_behaviors.make(config.listed(), TRANSFER)
    assert [x.name for x in made] == [*own, 'first', 'second']
  (made,) = named_behaviors.make(tmp_path / 'a,bank' / 'first', TRANSFER)
  assert made.name == 'first'  # Only a text lists several behaviors.
  for empty in (str(tmp_path), 'x' * 5000):
    with pytest.raises(ValueError, match='contains no behaviors'):
      named_behaviors.BehaviorsConfig(bank=empty).listed()
