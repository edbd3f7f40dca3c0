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
# # Bring your own behavior
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bt_acme/blob/main/notebooks/bring_your_own_behavior.ipynb)
#
# Behavior transfer treats the behavior as a black box: a function from observations
# to actions. The behavior can be a script, a policy trained with another library, or
# several of these at once. The last part also uses your own environment.

# %%
import importlib.util
import subprocess
import sys

if importlib.util.find_spec('bt_acme') is None:
  source = 'git+https://github.com/OWNER/bt_acme'
  pip = [sys.executable, '-m', 'pip', 'install', '--quiet', source]
  subprocess.run(pip, check=True)

# %% [markdown]
# ## A script
#
# A MiniGrid agent observes the 7 x 7 cells in front of it; the agent itself is in the
# middle of the bottom row. This script walks until something blocks its way, and then
# turns, usually in the same direction as last time. The class is instantiated once per
# environment, with a seed, and stores the memory of the script between steps. `state`
# and `restore` allow runs to be interrupted and resumed exactly.

# %%
import numpy as np

import bt_acme
from bt_acme import behaviors

LEFT, RIGHT, FORWARD = 0, 1, 2
FREE = (1, 4, 8)  # The codes of an empty cell, a door, and the goal.


class Walker:
  """Walks straight ahead, and turns at obstacles and sometimes before them."""

  def __init__(self, seed):
    self.random = np.random.default_rng(seed)
    self.turn = LEFT

  def __call__(self, image, previous_action, is_first):
    if is_first or self.random.random() < 0.1:
      self.turn = int(self.random.integers(2))
    if image[3, 5, 0] in FREE and self.random.random() < 0.9:
      return FORWARD
    return self.turn

  def state(self):
    return {'random': self.random.bit_generator.state, 'turn': self.turn}

  def restore(self, state):
    self.random.bit_generator.state = state['random']
    self.turn = state['turn']


walker = behaviors.FromCallable(Walker, name='walker')

# %%
task = 'MiniGrid-FourRooms-v0:fixed'
with_walker = bt_acme.transfer(task, walker, max_actor_steps=40_000)
bt_acme.evaluate(with_walker)

# %% [markdown]
# ## A policy from another library
#
# Load the saved policy in its constructor. This example uses a table of action values,
# learned with NumPy alone in another task (walking as far as possible in an empty
# room) and saved as a file. For PyTorch, replace `np.load` with `torch.load`.

# %%
import pathlib

from bt_acme import environments


def facing(image):
  """Returns whether the cells ahead, left and right are free: the state."""
  return tuple(int(image[x, y, 0] in FREE) for x, y in ((3, 5), (2, 6), (4, 6)))


def learn_to_walk(steps, seed=0):
  """Runs Q-learning with a reward for each step forward onto a free cell."""
  random, values = np.random.default_rng(seed), np.zeros((2, 2, 2, 3))
  environment = environments.make('MiniGrid-Empty-8x8-v0', seed=seed)
  state = facing(environment.reset().observation)
  for _ in range(steps):
    action = int(np.argmax(values[state] + random.gumbel(size=3) * 0.1))
    reward = float(action == FORWARD and state[0])
    next_state = facing(environment.step(action).observation)
    target = reward + 0.9 * values[next_state].max()
    values[state][action] += 0.1 * (target - values[state][action])
    state = next_state
  environment.close()
  return values


pathlib.Path('runs').mkdir(exist_ok=True)
np.save('runs/walking_policy.npy', learn_to_walk(5_000))


# %%
class Saved:
  """The saved policy; samples actions from a softmax over their values."""

  def __init__(self, seed):
    self.random = np.random.default_rng(seed)
    self.values = np.load('runs/walking_policy.npy')

  def __call__(self, image, previous_action, is_first):
    values = self.values[facing(image)]
    return int(np.argmax(values + self.random.gumbel(size=3)))

  def state(self):
    return self.random.bit_generator.state

  def restore(self, state):
    self.random.bit_generator.state = state


saved = behaviors.FromCallable(Saved, name='saved')

# %% [markdown]
# ## Several behaviors at once
#
# Each behavior has its own extra action, and each flight draws a behavior in
# proportion to the weights. bt_acme provides `action_repeat` and `uniform`, and
# behaviors trained by `bt_acme.pretrain` (see the quickstart).

# %%
with_three = bt_acme.transfer(
  task,
  [walker, saved, 'action_repeat'],
  behavior_weights=(2, 2, 1),
  max_actor_steps=40_000,
)
bt_acme.evaluate(with_three)

# %%
r2d2 = bt_acme.train(task, max_actor_steps=40_000)
bt_acme.plots.learning_curves(
  {'R2D2': r2d2, 'BT with the script': with_walker, 'BT with three': with_three}
)

# %%
bt_acme.video.show(with_three, flights=True, epsilon=0.1)

# %% [markdown]
# ## Your own environment
#
# One line registers any `gymnasium.Env` or `dm_env.Environment` with observations of
# uint8 images `[height, width, channels]` and actions numbered from 0. This example is
# a corridor of 12 cells with a reward at its end.

# %%
import gymnasium


class Corridor(gymnasium.Env):
  """A corridor: actions 0 and 1 move left and right."""

  observation_space = gymnasium.spaces.Box(0, 255, (3, 12, 1), np.uint8)
  action_space = gymnasium.spaces.Discrete(2)
  render_mode = 'rgb_array'

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self.position = self.steps = 0
    return self.image(), {}

  def step(self, action):
    self.position = int(np.clip(self.position + 2 * action - 1, 0, 11))
    self.steps += 1
    arrived = self.position == 11
    return self.image(), float(arrived), arrived, self.steps == 30, {}

  def image(self):
    image = np.zeros((3, 12, 1), np.uint8)
    image[1, self.position] = 10
    return image

  def render(self):
    return np.kron(25 * self.image(), np.ones((16, 16, 3), np.uint8))


bt_acme.register_environment('corridor', lambda seed: Corridor())

# %%
corridor = bt_acme.transfer('corridor', 'action_repeat', max_actor_steps=10_000)
bt_acme.evaluate(corridor)

# %%
bt_acme.video.show(corridor)
