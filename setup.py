"""The package: all of it on Python 3.10, and what needs no Acme elsewhere."""

import pathlib

import setuptools

_REQUIREMENTS = pathlib.Path(__file__).parent / 'requirements'

# Where dm-launchpad 0.5.0 has wheels, to which dm-acme 0.4.0 is tied.
_HAS_STACK = (
  'python_version < "3.11" and sys_platform == "linux" '
  'and platform_machine == "x86_64"'
)
_HAS_NO_STACK = (
  'python_version >= "3.11" or sys_platform != "linux" '
  'or platform_machine != "x86_64"'
)


def _requirements(name):
  lines = (_REQUIREMENTS / name).read_text().splitlines()
  return [line for line in lines if line and line[0] not in '# ']


# All of the compiled pins: what the stack of 2022 needs is released on without
# it, and this set alone is tested. The core takes what is newest.
_FULL = _requirements('full.txt')
_CORE = _requirements('core.in')


def _accelerator(name):
  """JAX of the same versions, with the plug-in of one accelerator."""
  (pinned,) = [line for line in _FULL if line.startswith('jax==')]
  return [
    f'{pinned.replace("jax", f"jax[{name}]")} ; {_HAS_STACK}',
    f'jax[{name}] ; {_HAS_NO_STACK}',
  ]


setuptools.setup(
  name='bt_acme',
  version='0.1.0',
  description='Behavior Transfer for value-based agents, on JAX and Acme.',
  packages=setuptools.find_packages(include=['bt_acme', 'bt_acme.*']),
  package_data={'': ['*.json', 'data/*.csv']},
  python_requires='>=3.10',
  install_requires=[f'{line} ; {_HAS_STACK}' for line in _FULL]
  + [f'{line} ; {_HAS_NO_STACK}' for line in _CORE],
  extras_require={
    'cuda12': _accelerator('cuda12'),
    'tpu': _accelerator('tpu'),
    'bench': _requirements('bench.in'),
    'dev': _requirements('dev.in') + _requirements('notebooks.in'),
    'notebooks': _requirements('notebooks.in'),
  },
)
