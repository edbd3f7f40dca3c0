"""Tests the types of the API in a user's program, with `mypy --strict`."""

import os
import pathlib
import re

import bt_acme
from tests import python

# With --strict, a superfluous `type: ignore` is an error.
_PROGRAM = """
import pathlib
from typing import Any, Mapping

import numpy as np
import numpy.typing as npt

import bt_acme


def stop(values: Mapping[str, Any]) -> bool:
  return bool(values['actor_steps'] > 100)


bt_acme.register_environment('mine', lambda seed: None)
ngu = bt_acme.pretrain(
  'mine',
  max_actor_steps=4,
  callbacks=[stop],
  workdir=pathlib.Path('x'),
  lstm_size=3,
)
behavior = ngu.export('runs/explorer')
run: bt_acme.Run = bt_acme.transfer(
  'mine', [behavior, 'uniform'], max_actor_steps=40, seed=3
)
r2d2 = bt_acme.train('mine', max_actor_steps=40, init_from=behavior)
evaluation: bt_acme.Evaluation = bt_acme.evaluate(run, episodes=3)
score: float = evaluation.summary()['returns'] + evaluation.solved
returns: npt.NDArray[np.float64] = evaluation.returns
steps: int = run.resume(80).actor_steps
bt_acme.load_run('x', bt_acme.load_behavior('y')).save('z')
bt_acme.plots.learning_curves({'R2D2': [r2d2], 'BT': run}, window=3)
bt_acme.plots.visits({'BT': evaluation}, path='x.png')
bt_acme.video.show(run, seed=3).save('x.webm')
bt_acme.show_versions()
version: str = bt_acme.__version__

bt_acme.pretrain('mine')  # type: ignore[call-arg]
bt_acme.train('mine', max_actor_steps='many')  # type: ignore[arg-type]
bt_acme.evaluate(run, episode=3)  # type: ignore[call-arg]
run.resume().solved  # type: ignore[attr-defined]
bt_acme.nothing  # type: ignore[attr-defined]
"""

# Errors in the package itself are hidden, as for an installed package. The API
# contains no types of the skipped packages, which take a long time to check.
_CONFIG = """
[mypy]
strict = true
follow_imports = silent
[mypy-chex.*,haiku.*,jax.*,matplotlib.*,optax.*,rlax.*]
follow_imports = skip
"""


def test_a_program_that_uses_the_api(tmp_path):
  (tmp_path / 'program.py').write_text(_PROGRAM)
  (tmp_path / 'mypy.ini').write_text(_CONFIG)
  cache = python.ROOT / '.pytest_cache' / 'mypy'
  python.check(
    *('-m', 'mypy', f'--cache-dir={cache}', '.'),
    cwd=tmp_path,
    env={**os.environ, 'MYPYPATH': str(python.ROOT)},
  )


def test_the_stub_has_all_public_names():
  package = pathlib.Path(bt_acme.__file__).parent
  assert (package / 'py.typed').is_file()
  stub = (package / '__init__.pyi').read_text()
  names = set(re.findall(r'(?: as |^)(\w+)(?:$| = )', stub, re.MULTILINE))
  assert names - {'_registry'} == set(bt_acme.__all__)
