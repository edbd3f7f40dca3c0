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
# Every run writes CSV logs to its workdir, whether it runs in one process or in many.
# From these logs, this notebook draws learning curves with bands over seeds and
# creates tables with intervals. The repository contains small example logs in
# `notebooks/logs`: three seeds each of R2D2 and of R2D2 with behavior transfer,
# trained as in the quickstart. Set `WORKDIRS` to use your own runs.

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

LOGS = pathlib.Path('logs')
if not LOGS.is_dir():  # On Colab, clone the repository for its logs.
  LOGS = pathlib.Path('checkout/notebooks/logs')
  if not LOGS.is_dir():
    clone = ['git', 'clone', '--quiet', '--depth=1']
    address = 'https://github.com/OWNER/bt_acme'
    subprocess.run([*clone, address, 'checkout'], check=True)

WORKDIRS = {
  'R2D2': sorted(LOGS.glob('r2d2-*')),
  'R2D2 + BT': sorted(LOGS.glob('bt-*')),
}
WORKDIRS

# %% [markdown]
# ## Learning curves
#
# Each thin line is a seed, the thick line is their mean, and the band spans the range
# from the lowest to the highest seed.

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
# All seeds are evaluated at the same steps, starting with step 0. Each point is the
# mean over the episodes of one evaluation.

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
# The table shows the interquartile mean over seeds with its 95% bootstrap interval
# (Agarwal et al. 2021), which is only a rough estimate for three seeds.

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
# A random agent scores 0%, a human 100%. This example uses two games; a table of the
# paper summarizes all 57 (`intervals.median`).

# %%
from bt_acme.evaluation import human_normalized_scores as hns

scores = {'road_runner': 13_800.0, 'montezuma_revenge': 0.0}
rows = [
  [game, f'{score:,.0f}', f'{hns.human_normalized(game, score):.0f}%']
  for game, score in scores.items()
]
print(tables.table(['game', 'score', 'human-normalized'], rows))
