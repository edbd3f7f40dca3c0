"""Random command lines of all launch scripts: accepted, or one line and code 2.

The scripts run in this process, up to the point where they would start to act.
The seed is printed; BT_ACME_FUZZ_SEED repeats the same command lines, and
BT_ACME_FUZZ_LINES sets their number.
"""

import collections
import contextlib
import dataclasses
import functools
import io
import math
import os
import random
import runpy
import secrets
import shlex
import sys
import traceback

import pytest
from absl import flags as absl_flags
from absl.testing import flagsaver

from bt_acme import assembly
from bt_acme.cli import flags
from bt_acme.config import checks, presets
from bt_acme.evaluation import episode_records
from bt_acme.launching import starting
from bt_acme.runtime import provenance
from tests.agents import fakes
from tests.launch import scripts

_SEED = 'BT_ACME_FUZZ_SEED'
_NUM_LINES = int(os.environ.get('BT_ACME_FUZZ_LINES', '240'))
_SCRIPTS = ('run_ngu', 'run_r2d2', 'run_bt', 'evaluate')
_WORLD = 'MiniGrid-Empty-5x5-v0'
_ROW = {
  **{'environment': 0, 'episode_return': 0.5, 'episode_length': 9},
  'greedy_extra_share': 0.0,
}
_EPISODE = episode_records.Recording(_ROW, [0] * 9, [0] * 9, [])
_ODD_TEXTS = (
  *('', ' ', ',', 'x', 'ä', 'nan', '-1', '%s', '{}', '\n', "'", '../..'),
  *('x' * 300, 'x' * 5000, '9' * 5000, '/dev/null', '/proc/x', '~'),
)
# Values of text settings, in addition to the odd ones.
_TEXTS = {
  'env': (
    *(_WORLD, f'{_WORLD}:fixed', 'MiniGrid-DoorKey-8x8-v0:no_goal', 'Chain-9'),
    *('montezuma_revenge', 'hero:miners_easy', 'Recall-6', 'Chain-0'),
    *(f'{_WORLD}:fixed=x', 'MiniGrid-', 'montezuma', 'Chain-' + '9' * 30),
  ),
  'behavior': ('uniform', 'action_repeat,uniform', 'b', 'uniform,b', 'b,'),
  'bank': ('nowhere', '.', 'a,b'),
  'behavior_weights': ('1', '1,2', '0', '-1', 'nan', 'inf,1', '1e308,1e308'),
  'behavior_roles': ('both', 'fly', 'choose', 'both,fly', 'fly,', 'x'),
  'init_from': ('b', 'uniform'),
  'snapshot_steps': ('10', '10,20', '20,10', '0', '1e3', '1' * 40),
  'ray_address': ('auto', '10.0.0.1:6379', '10.0.0.1', ':1', 'a:b'),
  'ray_python': (sys.executable, 'nowhere'),
  'placement': (
    'actor:num_cpus=2',
    'learner:num_gpus=1,role=x',
    'actor',
    'a:b=c',
  ),
  'video': ('a.webm', 'a.gif', 'a.mp4', 'b/a.gif', 'taken/a.gif'),
  'output': ('a.csv', 'taken', 'b', 'taken/a.csv', 'new/a.csv'),
  'workdir': ('run', 'taken', 'taken/run', 'b', 'new/run'),
}


def _odd_number(rng):
  size = math.copysign(10 ** rng.uniform(0, 8), rng.uniform(-1, 3))
  huge = 10.0 ** rng.uniform(-320, 308)
  return rng.choice(
    [
      *(0, 1, -1, 2, 3, 7, 64, 256, 2**31, 2**32, 2**63, 10**30, -(10**30)),
      *(0.0, 0.5, 1.0, -0.0, 1.5, huge, -huge, 'inf', '-inf', 'nan', '1e400'),
      *('', 'x', '0x10', '1_000', '٣', '1,5', '--', '9' * 5000),
      *[int(size)] * 12,
      *[size] * 4,
    ]
  )


def _value(rng, name, field):
  """Draws a value of a setting, mostly of its type."""
  kind = type(field.default)
  choices = checks.limits_of(field)['choices']
  if choices:
    return rng.choice([*choices, *choices, *_ODD_TEXTS])
  if kind is bool:
    return rng.choice(['true', 'false', '1', '0', 'no', '', '2', 'x'])
  if kind is str:
    return rng.choice([*_TEXTS[name] * 3, *_ODD_TEXTS])
  return _odd_number(rng)


def _settings_of(script):
  """Returns the field of each setting of a launch script, by its name."""
  groups = vars(runpy.run_path(scripts.path_of(script))['Settings']()).values()
  return {x.name: x for group in groups for x in dataclasses.fields(group)}


def _command(rng, script, settings):
  """Draws the arguments of one command line: a base, and odd settings."""
  arguments = []
  if script == 'evaluate':
    arguments += ['--behavior=b']
  else:
    arguments += [f'--workdir={secrets.token_hex(8)}']
    if rng.random() < 0.8:
      arguments += scripts.TINY
      arguments += scripts.NGU if script == 'run_ngu' else ()
    else:
      arguments += [f'--env={_WORLD}']
    arguments += ['--behavior=uniform'] if script == 'run_bt' else []
    if rng.random() < 0.3:
      preset = rng.choice([*presets.PRESETS, *_ODD_TEXTS])
      arguments += [f'--preset={preset}']
  for name in rng.sample(sorted(settings), rng.choice([0, 1, 1, 1, 2, 3])):
    arguments += [f'--{name}={_value(rng, name, settings[name])}']
  return arguments


def _run(script, arguments):
  """Runs a script in this process; returns code, output and errors."""
  output, errors = io.StringIO(), io.StringIO()
  sys.argv[:] = [scripts.path_of(script), *arguments]
  with (
    flagsaver.flagsaver(),
    contextlib.redirect_stdout(output),
    contextlib.redirect_stderr(errors),
    pytest.raises(SystemExit) as end,
  ):
    runpy.run_path(sys.argv[0], run_name='__main__')
  return end.value.code or 0, output.getvalue(), errors.getvalue()


@pytest.fixture(name='stopped')
def stop_before_acting(monkeypatch, tmp_path):
  """Stops scripts before they act, and creates a behavior and a file."""
  fakes.export_behavior(tmp_path / 'b', env=_WORLD)
  (tmp_path / 'taken').write_text('mine')
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, 'argv', list(sys.argv))
  for module, name, result in (
    (starting, '_launch_nodes', 0),
    (starting, '_run_in_process', 0),
    (provenance, 'begin', None),
    (provenance, 'end', None),
    (episode_records, 'play', [_EPISODE]),
  ):
    monkeypatch.setattr(
      module, name, lambda *args, result=result, **kwargs: result
    )
  # The specification of an environment is always the same.
  spec_by_name = functools.lru_cache(assembly.spec_by_name)
  monkeypatch.setattr(assembly, 'spec_by_name', spec_by_name)
  # `app.run` would install handlers for the rest of the process.
  monkeypatch.setattr(
    flags.app,
    'run',
    lambda main, flags_parser: sys.exit(main(flags_parser(sys.argv))),
  )


def test_random_command_lines(stopped, capsys):
  # Programs of other tests in this process define flags of the same names.
  for module, found in absl_flags.FLAGS.flags_by_module_dict().items():
    if module.startswith('experiments.'):
      for flag in list(found):
        delattr(absl_flags.FLAGS, flag.name)
  del stopped
  seed = os.environ.get(_SEED) or str(secrets.randbelow(2**32))
  with capsys.disabled():
    print(f'\n{_SEED}={seed}')
  settings = {script: _settings_of(script) for script in _SCRIPTS}
  codes = collections.Counter()
  for number in range(_NUM_LINES):
    script = _SCRIPTS[number % len(_SCRIPTS)]
    rng = random.Random(f'{seed} {number}')
    arguments = _command(rng, script, settings[script])
    repeat = f'{_SEED}={seed}: launch/{script}.py {shlex.join(arguments)}\n'
    try:
      code, output, errors = _run(script, arguments)
    except Exception:
      pytest.fail(repeat + traceback.format_exc())
    codes[script, code] += 1
    if code:
      assert code == 2 and not output, repeat + output
      assert errors.startswith('error: '), repeat + errors
      assert errors.count('\n') == 1 and errors.endswith('\n'), repeat + errors
    else:
      assert output and not errors, repeat + errors
  assert set(codes) == {(s, code) for s in _SCRIPTS for code in (0, 2)}, codes
