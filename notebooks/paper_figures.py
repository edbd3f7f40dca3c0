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
# # Figures and tables from the logs of runs
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bt_acme/blob/main/notebooks/paper_figures.ipynb)
#
# Every run leaves CSV logs in its workdir, whether it ran here or in many
# processes. This notebook draws learning curves with bands over seeds, and makes
# tables with intervals, from such folders. The repository has small ones in
# `notebooks/logs`: three seeds of R2D2 and of R2D2 with behavior transfer, which
# were made as in the quickstart. Set `WORKDIRS` to read your own.

# %%
import importlib.util
import subprocess
import sys

if importlib.util.find_spec('bt_acme') is None:
  source = 'git+https://github.com/OWNER/bt_acme'
  pip = [sys.executable, '-m', 'pip', 'install', '--quiet', source]
  subprocess.run(pip, check=True)

# %%
import pathlib

if not pathlib.Path('logs').is_dir():  # On Colab: the checkout has them.
  clone = ['git', 'clone', '--quiet', '--depth=1']
  address = 'https://github.com/OWNER/bt_acme'
  subprocess.run([*clone, address, 'checkout'], check=True)
  LOGS = pathlib.Path('checkout/notebooks/logs')
else:
  LOGS = pathlib.Path('logs')

WORKDIRS = {
  'R2D2': sorted(LOGS.glob('r2d2-*')),
  'R2D2 + BT': sorted(LOGS.glob('bt-*')),
}
WORKDIRS

# %% [markdown]
# ## Learning curves
#
# Each thin line is a seed, the thick one their mean, and the band reaches from the
# lowest seed to the highest.

# %%
import numpy as np

from bt_acme.evaluation import logs, plots

training = {
  label: [logs.read_log(path / 'logs/actor/logs.csv') for path in paths]
  for label, paths in WORKDIRS.items()
}
curves = {
  label: [
    plots.smoothed_curve(columns, 'episode_return', window=50)
    for columns in seeds
  ]
  for label, seeds in training.items()
}
plots.learning_curves(
  '', curves, title='A goal in another room', ylabel='return of an episode'
)

# %% [markdown]
# Evaluations happen at the same steps in all seeds, from step 0 on. Each of their
# points is the mean over the episodes of an evaluation.

# %%
evaluations = {
  label: [
    plots.means_by_step((columns['actor_steps'], columns['episode_return']))
    for columns in (
      logs.read_log(path / 'logs/evaluator/logs.csv') for path in paths
    )
  ]
  for label, paths in WORKDIRS.items()
}
plots.learning_curves(
  '', evaluations, title='Evaluations', ylabel='return of an episode'
)

# %% [markdown]
# ## A table with intervals
#
# The interquartile mean over seeds, and a 95 % interval by the bootstrap of Agarwal
# et al. 2021 (with three seeds it is a rough one).

# %%
from bt_acme.evaluation import intervals, tables

rows = []
for label, seeds in evaluations.items():
  last = np.array([[returns[-1]] for _, returns in seeds])  # [seeds, tasks]
  estimate = intervals.bootstrap(intervals.interquartile_mean, last)
  each = ', '.join(f'{value:.2f}' for value in last[:, 0])
  interval = f'{estimate.low:.2f} to {estimate.high:.2f}'
  rows.append([label, f'{estimate.value:.2f}', interval, each])
print(tables.table(['', 'return', 'interval', 'seeds'], rows))

# %% [markdown]
# ## Human-normalized scores
#
# 0 is a random agent, 100 a human. These are the scores of two games; a table of
# the paper takes all 57 (`human_normalized_scores.summarize`).

# %%
from bt_acme.evaluation import human_normalized_scores as hns

scores = {'road_runner': 13_800.0, 'montezuma_revenge': 0.0}
rows = [
  [game, f'{score:,.0f}', f'{hns.human_normalized(game, score):.0f} %']
  for game, score in scores.items()
]
print(tables.table(['game', 'score', 'human-normalized'], rows))
