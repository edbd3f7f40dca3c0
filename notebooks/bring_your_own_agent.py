# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Bring your own agent
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bt_acme/blob/main/notebooks/bring_your_own_agent.ipynb)
#
# `BTBuilder` adds behavior transfer to an agent of dm-acme, whose replay and learner
# are unchanged. dm-acme needs Reverb and TensorFlow 2.8, which are available only for
# Python 3.10 on Linux x86_64. With a newer Python, this notebook therefore runs the
# agent in a Python 3.10 process and shows its output.
#
# The next cell finds such a Python, or creates a virtual environment (about two
# gigabytes, a few minutes).

# %%
import importlib.util
import pathlib
import shutil
import subprocess
import sys

SOURCE = 'git+https://github.com/OWNER/bt_acme'


def python_with_acme():
  """Returns the path of a Python with bt_acme and dm-acme, or None."""
  if importlib.util.find_spec('acme') and importlib.util.find_spec('bt_acme'):
    return sys.executable
  environment = pathlib.Path('bt_acme_python3.10')
  python = environment / 'bin' / 'python'
  # pip installs bt_acme last. An environment without it is incomplete.
  if not list(environment.glob('lib/*/site-packages/bt_acme-*')):
    create = ['python3.10', '-m', 'venv', str(environment)]
    if not shutil.which('python3.10') or subprocess.run(create).returncode:
      return None
    pip = [str(python), '-m', 'pip', 'install', '--quiet', SOURCE]
    subprocess.run(pip, check=True)
  return str(python)


PYTHON = python_with_acme()
print(
  PYTHON
  or 'No complete Python 3.10 was found. On Colab and Ubuntu, install it with '
  '`apt-get install python3.10-venv libpython3.10`, or use bt_acme.transfer, '
  'which runs the R2D2 of bt_acme on any Python (see the quickstart).'
)

# %% [markdown]
# ## dm-acme's DQN on MiniGrid
#
# This is the whole program. The agent must take a key, open a door and reach the goal. The
# behavior comes with the package; `behaviors.Exported('runs/ngu/behavior')` would be one of
# your own. `make_networks` creates the network of DQN, which `builder.make_networks` gives one
# more output, for the extra action. DQN learns for 20,000 steps, about a minute, first alone,
# then with behavior transfer.

# %%
DQN = """
from bt_acme import agents, behaviors, environments  # Before parts of Acme.
from bt_acme.config import TransferConfig
import acme
import haiku as hk
import jax
from acme.agents.jax import dqn
from acme.jax import networks as networks_lib
from acme.jax import utils
from acme.jax.layouts.local_layout import LocalLayout


def make_networks(spec):
  def q_values(image):
    x = image.astype('float32') / 10  # The numbers of MiniGrid's images.
    for channels in (16, 32):
      x = jax.nn.relu(hk.Conv2D(channels, 2, padding='VALID')(x))
    return hk.nets.MLP([128, 128, spec.actions.num_values])(hk.Flatten()(x))

  network = hk.without_apply_rng(hk.transform(q_values))
  dummy = utils.add_batch_dim(utils.zeros_like(spec.observations))
  return networks_lib.FeedForwardNetwork(
    lambda key: network.init(key, dummy), network.apply)


environment = environments.make('MiniGrid-DoorKey-8x8-v0:fixed=21', seed=0)
spec = acme.make_environment_spec(environment)
config = dqn.DQNConfig(
  batch_size=64, learning_rate=5e-4, min_replay_size=1,
  samples_per_insert_tolerance_rate=float('inf'))
alone = dqn.DQNBuilder(config, dqn.PrioritizedDoubleQLearning())
builder = agents.BTBuilder(
  lambda spec: alone, [behaviors.Exported('minigrid-explorer')],
  TransferConfig(min_flight_probability=0.03, flight_exponent=1.5),
  environment_spec=spec)


def learn(name, builder, networks, spec, evaluated=lambda policy: policy):
  policy = dqn.behavior_policy(networks)
  agent = LocalLayout(
    0, spec, builder, networks, policy, workdir=None, min_replay_size=1_000,
    batch_size=64, samples_per_insert=8)
  training, steps = acme.EnvironmentLoop(environment, agent), 0
  while steps < 20_000:
    steps += training.run_episode()['episode_length']
  actor = builder.make_actor(
    jax.random.PRNGKey(0), evaluated(policy), variable_source=agent)
  test = acme.EnvironmentLoop(environment, actor)
  returns = [test.run_episode()['episode_return'] for _ in range(20)]
  print(name, 'solves', sum(x > 0 for x in returns), 'of 20 episodes')


learn('DQN', alone, make_networks(spec), spec)
learn('DQN + BT, without flights', builder,
      builder.make_networks(make_networks), builder.agent_spec,
      builder.make_evaluation_policy)
"""


def run(program):
  """Runs a program in the Python with dm-acme and prints its output."""
  if PYTHON is None:
    print('skipped: no Python with dm-acme (see above)')
    return
  command = [PYTHON, '-c', program]
  done = subprocess.run(command, capture_output=True, text=True, check=False)
  print(done.stdout if done.returncode == 0 else done.stderr[-3_000:])


run(DQN)

# %% [markdown]
# ## dm-acme's TD3, with flights only
#
# Agents with continuous actions have no extra action, so behavior transfer uses only
# flights. From time to time, a script pushes the car in the direction in which it is
# rolling, which gets it up the hill. Alone, TD3 hardly ever gets there.

# %%
TD3 = """
from bt_acme import agents, behaviors
from bt_acme.config import TransferConfig
from bt_acme.environments.gymnasium import Gymnasium
import acme
import numpy as np
from acme.agents.jax import td3
from acme.jax.layouts.local_layout import LocalLayout

environment = Gymnasium('MountainCarContinuous-v0', seed=0)
spec = acme.make_environment_spec(environment)
config = td3.TD3Config(
  min_replay_size=1, samples_per_insert_tolerance_rate=float('inf'))
alone = td3.TD3Builder(config)
builder = agents.BTBuilder(
  alone,
  [behaviors.FromCallable(
    lambda seed: lambda state, action, is_first: np.sign(state[1:]))],
  TransferConfig(extra_action=False, min_flight_probability=0.01,
                 flight_exponent=1.5),
  environment_spec=spec)
networks = td3.make_networks(spec, (64, 64))
policy = td3.get_default_behavior_policy(networks, spec.actions, config.sigma)
for name, each in (('TD3', alone), ('TD3 + flights', builder)):
  agent = LocalLayout(
    0, spec, each, networks, policy,
    workdir=None, min_replay_size=100, batch_size=32, samples_per_insert=2)
  loop = acme.EnvironmentLoop(environment, agent)
  returns = [loop.run_episode()['episode_return'] for _ in range(3)]
  print(name, 'returns:', *(f'{float(x):.1f}' for x in returns))
"""
run(TD3)

# %% [markdown]
# The documentation also shows dm-acme's R2D2 on MiniGrid. The learner of bt_acme's own
# builders additionally updates the value of the action that the behavior took.
