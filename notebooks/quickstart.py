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
# First, a policy is trained without any reward, only to explore. Then this policy
# helps a second agent to learn a task that the agent rarely solves on its own.
# Everything runs in this process, in about five minutes on two cores.
#
# The first cell installs bt_acme if it is missing. Installed versions of JAX and
# NumPy are kept.

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
# The environment has four rooms, a different layout in each episode, and no goal.
# NGU rewards the agent for observations that are new in the episode. You can
# interrupt the cell at any time: `ngu` then holds the policy learned so far, and
# `ngu.resume()` continues the training.

# %%
import bt_acme

task = 'MiniGrid-FourRooms-v0:fixed'
ngu = bt_acme.pretrain('MiniGrid-FourRooms-v0:no_goal', max_actor_steps=40_000)
behavior = ngu.export('runs/explorer')

# %% [markdown]
# ## Watch the behavior
#
# The task has a single layout, which the behavior was not trained on, and a goal in
# another room, 15 actions away. Reaching the goal is the only source of reward. The
# maps show which cells a random policy and the behavior visit in 50 episodes.

# %%
explored = {
  'random': bt_acme.evaluate(behavior, env=task, epsilon=1.0),
  'behavior': bt_acme.evaluate(behavior, env=task),
}
bt_acme.plots.visits(explored)

# %%
bt_acme.video.show(behavior, env=task)

# %% [markdown]
# ## Learn the task with and without the behavior
#
# The agent learns with R2D2 from the reward of the task. With behavior transfer, the
# behavior takes control in *flights* of random length, and the agent can select it
# for a single step as an *extra action*. The behavior itself does not change. R2D2
# alone hardly ever reaches the goal.

# %%
bt = bt_acme.transfer(task, behavior, max_actor_steps=40_000)

# %%
r2d2 = bt_acme.train(task, max_actor_steps=40_000)

# %% [markdown]
# ## Compare

# %%
print(bt_acme.evaluate(bt), bt_acme.evaluate(r2d2), sep='\n\n')

# %%
bt_acme.plots.learning_curves({'R2D2': r2d2, 'BT': bt}, path='runs/curves.png')

# %% [markdown]
# ## See who is in control
#
# In these videos, the border is blue when the agent acts by itself, orange when it
# selects the behavior as an extra action, and purple during a flight.

# %%
bt_acme.video.show(bt).save('runs/bt.webm')
bt_acme.video.show(bt, flights=True, epsilon=0.1)

# %% [markdown]
# The shares of training steps in flights and with the extra action:

# %%
bt_acme.plots.learning_curves({'flights': bt}, value='flight_share')

# %%
bt_acme.plots.learning_curves({'extra action': bt}, value='greedy_extra_share')

# %% [markdown]
# `bt.episodes` and `bt.learner` contain the logs as arrays by name.
# `bt.resume(60_000)` continues the training up to 60,000 steps. `bt.save('runs/bt')`
# saves the run, and `bt_acme.load_run('runs/bt')` loads it.
# `help('bt_acme.config.TransferConfig')` describes the settings of behavior transfer,
# `help('bt_acme.config.LearnerConfig')` those of the learner, and `help('bt_acme.config')`
# names the other groups.
#
# The results are reproducible on one processor type with one set of package
# versions; on other machines, the numbers differ.
#
# Please include the output of the last cell in bug reports.

# %%
bt
# %%
bt_acme.show_versions()
