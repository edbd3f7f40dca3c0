"""Tests the cards of behaviors."""

import io
import json
import types

import pytest
from PIL import Image

import bt_acme
from bt_acme import config as config_lib
from bt_acme.config import names
from bt_acme.evaluation import recorder
from tests import small_examples

_ENV = 'MiniGrid-Empty-5x5-v0'


@pytest.fixture(name='workdir', scope='module')
def pretrain(tmp_path_factory):
  workdir = tmp_path_factory.mktemp('runs') / 'explorer'
  budget = {'max_actor_steps': 400, 'num_environments': 4}
  settings = {**small_examples.SETTINGS, 'min_replay_size': 10, **budget}
  bt_acme.pretrain(_ENV, workdir=workdir, progress='off', **settings)
  return workdir


def test_a_card_has_facts_film_scores_curve_command_and_notes(workdir):
  card = bt_acme.describe(
    workdir, _ENV, videos=_ENV, episodes=2, notes='## Limits\n\nNone known.'
  )
  behavior = bt_acme.load_behavior(workdir)
  for part in (
    '- Agent: NGU',
    f'- Trained for 400 actor steps in `{_ENV}`',
    f'`{behavior.params_sha256}`',
    f'![An episode in {_ENV}](minigrid-empty-5x5-v0.gif)',
    '2 episodes in each environment with epsilon 0.05 and seed 0',
    '![Learning curve](curve.png)',
    f'| `{_ENV}` | ',
    'run = bt_acme.pretrain(',
    "run.export('behavior')",
  ):
    assert part in card.markdown
  assert card.markdown.endswith('## Limits\n\nNone known.\n')
  film, curve = (
    Image.open(io.BytesIO(card.pictures[name]))
    for name in ('minigrid-empty-5x5-v0.gif', 'curve.png')
  )
  assert film.n_frames > 1 and film.size == (80, 80)
  assert curve.format == 'PNG'


def test_environments_are_checked_before_anything_is_played(monkeypatch):
  monkeypatch.setattr(recorder, 'film', None)
  with pytest.raises(ValueError, match="env='nope' is unknown"):
    bt_acme.describe('minigrid-explorer', ['nope'], videos=[_ENV])


def test_the_command_has_all_settings(workdir):
  card = bt_acme.describe(workdir)
  assert "preset='paper'" in card.markdown
  code = card.markdown.partition('```python\n')[2].partition('```')[0]
  calls = []

  def record(env, max_actor_steps, preset, num_stacked, **settings):
    run = [settings.pop(name) for name in ('seed', 'num_environments')]
    calls.append((env, max_actor_steps, num_stacked, run, settings))
    return types.SimpleNamespace(export=calls.append)

  exec(code, {'bt_acme': types.SimpleNamespace(pretrain=record)})
  behavior = bt_acme.load_behavior(workdir)
  (env, actor_steps, num_stacked, run, settings), name = calls
  assert (env, actor_steps, name) == (_ENV, behavior.actor_steps, 'behavior')
  assert run == [0, 4]
  assert num_stacked == behavior.agent.spec.num_stacked
  assert names.build(config_lib.NGUConfig, settings) == behavior.agent.config


def test_a_behavior_without_logs_has_no_curve(workdir, tmp_path):
  behavior = bt_acme.load_run(workdir).export(tmp_path / 'b')
  card = bt_acme.describe(behavior)
  assert 'curve' not in card.markdown and not card.pictures
  assert 'seed=' not in card.markdown
  record = {'agent': 'x', 'config': {}, 'run': {'unknown': 1}}
  (tmp_path / 'config.json').write_text(json.dumps(record))
  assert bt_acme.describe(behavior).markdown == card.markdown
  assert card._repr_html_().startswith('<h1>b</h1>')
