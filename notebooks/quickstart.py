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
# # Behavior transfer in five minutes
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bt_acme/blob/main/notebooks/quickstart.ipynb)
#
# A policy is trained without any reward, only to explore. Then it helps a second
# agent to learn a task that this agent does not learn alone. All of it runs here,
# in this process, in about five minutes on two cores.
#
# The first cell installs bt_acme if it is missing, beside the JAX and NumPy that
# are there.

# %%
import importlib.util
import subprocess
import sys

if importlib.util.find_spec('bt_acme') is None:
  source = 'git+https://github.com/OWNER/bt_acme'
  pip = [sys.executable, '-m', 'pip', 'install', '--quiet', source]
  subprocess.run(pip, check=True)

# %% [markdown]
# ## Pre-train without rewards
#
# The world has four rooms, another layout in each episode, and no goal. NGU pays
# the agent for whatever is new in the episode. Interrupt the cell when you like:
# `ngu` is then what has been learned so far, and `ngu.resume()` goes on.

# %%
import bt_acme

task = 'MiniGrid-FourRooms-v0:fixed'
ngu = bt_acme.pretrain('MiniGrid-FourRooms-v0:no_goal', max_actor_steps=40_000)
behavior = ngu.export('runs/explorer')

# %% [markdown]
# ## Look at what it does
#
# The task has one layout, which the behavior has not been trained for, and a goal
# in another room, 15 actions away. It pays when it is reached, and nothing else
# does. These maps show which cells the behavior visits in 50 episodes, and which
# ones a random policy does.

# %%
explored = {
  'random': bt_acme.evaluate(behavior, env=task, epsilon=1.0),
  'behavior': bt_acme.evaluate(behavior, env=task),
}
bt_acme.plots.visits(explored)

# %%
bt_acme.video.show(behavior, env=task)

# %% [markdown]
# ## Learn the task with it, and without it
#
# The agent learns with R2D2 from the task's reward. With behavior transfer, the
# behavior has control in *flights* of random length, and the agent may call it for
# one step as an *extra action*. The behavior itself does not change. Alone, R2D2
# hardly ever comes upon the goal.

# %%
bt = bt_acme.transfer(task, behavior, max_actor_steps=40_000)

# %%
r2d2 = bt_acme.train(task, max_actor_steps=40_000)

# %% [markdown]
# ## Compare

# %%
print(bt_acme.evaluate(bt), bt_acme.evaluate(r2d2))

# %%
bt_acme.plots.learning_curves({'R2D2': r2d2, 'BT': bt}, path='runs/curves.png')

# %% [markdown]
# ## See who is in control
#
# In the film of a training episode, the border is blue where the agent acts by
# itself, orange where it calls the behavior for one step, and purple in a flight.

# %%
bt_acme.video.show(bt).save('runs/bt.webm')
bt_acme.video.show(bt, flights=True, epsilon=0.1)

# %% [markdown]
# The shares of steps that flights and the extra action had in training:

# %%
bt_acme.plots.learning_curves({'flights': bt}, value='flight_share')

# %%
bt_acme.plots.learning_curves({'extra action': bt}, value='greedy_extra_share')

# %% [markdown]
# `bt` has more: `bt.episodes` and `bt.learner` are arrays by name,
# `bt.resume(60_000)` goes on, `bt.save('runs/bt')` and `bt_acme.load_run` keep it,
# and `help(bt_acme.transfer)` lists what can be changed. For a bug report:

# %%
bt
# %%
bt_acme.show_versions()
