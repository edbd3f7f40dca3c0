"""Packages bt_acme: on Python 3.10 with Acme, elsewhere without."""

import pathlib
import runpy

import setuptools

_ROOT = pathlib.Path(__file__).parent
_URL = 'https://github.com/OWNER/bt_acme'  # Set by `make owner OWNER=name`.

# dm-acme 0.4.0 requires dm-launchpad 0.5.0, which has wheels only here.
_HAS_STACK = (
  'python_version < "3.11" and sys_platform == "linux" '
  'and platform_machine == "x86_64"'
)
_HAS_NO_STACK = (
  'python_version >= "3.11" or sys_platform != "linux" '
  'or platform_machine != "x86_64"'
)


def _requirements(name):
  lines = (_ROOT / 'requirements' / name).read_text().splitlines()
  return [line for line in lines if line and line[0] not in '# ']


# The full stack uses the compiled pins, because newer releases of its
# dependencies are incompatible and only this set is tested. The core accepts
# the newest versions.
_FULL = _requirements('full.txt')
_CORE = _requirements('core.in')


def _accelerator(name):
  """Returns requirements for JAX with the plug-in of an accelerator."""
  (pinned,) = [line for line in _FULL if line.startswith('jax==')]
  return [
    f'{pinned.replace("jax", f"jax[{name}]")} ; {_HAS_STACK}',
    f'jax[{name}] ; {_HAS_NO_STACK}',
  ]


setuptools.setup(
  name='bt_acme',
  # Runs the file alone, because importing the package would import JAX.
  version=runpy.run_path(str(_ROOT / 'bt_acme' / 'version.py'))['__version__'],
  description=(
    'Behavior Transfer in JAX: pre-train an exploration policy without '
    'rewards, then reuse it to solve tasks with sparse rewards.'
  ),
  long_description=(_ROOT / 'README.md').read_text(encoding='utf-8'),
  long_description_content_type='text/markdown',
  author='The bt_acme authors',
  url=_URL,
  project_urls={
    'Changelog': f'{_URL}/blob/main/CHANGELOG.md',
    'Documentation': f'{_URL}#readme',
    'Issues': f'{_URL}/issues',
    'Paper': 'https://arxiv.org/abs/2102.13515',
    'Source': _URL,
  },
  keywords='reinforcement learning, exploration, transfer, JAX, NGU, R2D2',
  classifiers=[
    'Development Status :: 4 - Beta',
    'Intended Audience :: Science/Research',
    'Operating System :: POSIX :: Linux',
    # The tested versions.
    'Programming Language :: Python :: 3.10',
    'Programming Language :: Python :: 3.12',
    'Programming Language :: Python :: 3.13',
    'Topic :: Scientific/Engineering :: Artificial Intelligence',
    'Typing :: Typed',
  ],
  packages=setuptools.find_packages(include=['bt_acme', 'bt_acme.*']),
  package_data={
    '': ['*.json', 'data/*.csv', 'pretrained/*/*', '*.pyi', 'py.typed']
  },
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
