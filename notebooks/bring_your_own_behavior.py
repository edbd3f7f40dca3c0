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
# Behavior transfer takes the behavior as a black box: a function from what is seen
# to an action. It may be a script, a policy that another library has trained, or
# several of these at once. The last part takes an environment of your own, too.

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
# In MiniGrid an agent sees the 7 x 7 cells in front of it, itself at the bottom in
# the middle. This script walks until something is in its way, and then turns, most
# often to the side that it turned to last. A behavior is made once for each
# environment, from a seed; a class keeps what it remembers between steps.
# `state` and `restore` let a run be stopped and resumed exactly.

# %%
import numpy as np

import bt_acme
from bt_acme import behaviors

LEFT, RIGHT, FORWARD = 0, 1, 2
FREE = (1, 4, 8)  # The codes of an empty cell, a door, and the goal.


class Walker:
  """Walks straight on, and turns in front of obstacles and sometimes before."""

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
# ## A policy of another library
#
# Whatever it is saved as, load it in the function that makes the policy. Here a
# table of action values stands for it: it was learned with NumPy alone, in another
# task (to walk as far as possible in an empty room), and saved as a file. With
# PyTorch, `torch.load` would take the place of `np.load`.

# %%
import pathlib

from bt_acme import environments


def facing(image):
  """What is in front, to the left and to the right: the state of the table."""
  return tuple(int(image[x, y, 0] in FREE) for x, y in ((3, 5), (2, 6), (4, 6)))


def learn_to_walk(steps, seed=0):
  """Q-learning; each step forward pays, if the way is free."""
  random, values = np.random.default_rng(seed), np.zeros((2, 2, 2, 3))
  world = environments.make('MiniGrid-Empty-8x8-v0', seed=seed)
  seen = facing(world.reset().observation)
  for _ in range(steps):
    action = int(np.argmax(values[seen] + random.gumbel(size=3) * 0.1))
    paid = float(action == FORWARD and seen[0])
    step = world.step(action)
    after = facing(step.observation)
    target = paid + 0.9 * values[after].max()
    values[seen][action] += 0.1 * (target - values[seen][action])
    seen = after
  world.close()
  return values


pathlib.Path('runs').mkdir(exist_ok=True)
np.save('runs/walking_policy.npy', learn_to_walk(5_000))


# %%
class Saved:
  """The policy of the file; it draws from its values, softly."""

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
# Each has an extra action of its own, and a flight draws one of them in proportion
# to the weights. `action_repeat` and `uniform` come with bt_acme, and so does what
# `bt_acme.pretrain` learns (see the quickstart).

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
# One line registers any `gymnasium.Env` or `dm_env.Environment` that shows uint8
# images `[height, width, channels]` and takes actions numbered from 0. This one is
# a corridor of 12 cells; the reward is at its end.

# %%
import gymnasium


class Corridor(gymnasium.Env):
  """Actions 0 and 1 go left and right; the picture has the agent in it."""

  observation_space = gymnasium.spaces.Box(0, 255, (3, 12, 1), np.uint8)
  action_space = gymnasium.spaces.Discrete(2)
  render_mode = 'rgb_array'

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self.place = self.steps = 0
    return self.picture(), {}

  def step(self, action):
    self.place = int(np.clip(self.place + 2 * action - 1, 0, 11))
    self.steps += 1
    arrived = self.place == 11
    return self.picture(), float(arrived), arrived, self.steps == 30, {}

  def picture(self):
    image = np.zeros((3, 12, 1), np.uint8)
    image[1, self.place] = 10
    return image

  def render(self):
    return np.kron(25 * self.picture(), np.ones((16, 16, 3), np.uint8))


bt_acme.register_environment('corridor', lambda seed: Corridor())

# %%
corridor = bt_acme.transfer('corridor', 'action_repeat', max_actor_steps=10_000)
bt_acme.evaluate(corridor)

# %%
bt_acme.video.show(corridor)
