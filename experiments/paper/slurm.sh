#!/bin/bash
# Starts a worker of `python -m experiments.paper` in each SLURM array task.
#
#   sbatch --array=1-16 experiments/paper/slurm.sh --scale=gpu --folder=/shared/gpu
#
# Add the options that your cluster requires: partition, account, memory,
# modules.
#SBATCH --job-name=bt-paper
#SBATCH --time=24:00:00
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=20
#SBATCH --signal=B:TERM@600
#SBATCH --requeue
#SBATCH --output=%x-%A_%a.log

cd "${SLURM_SUBMIT_DIR:?submit this script with sbatch}" || exit 1

# SLURM selects the GPU, which is the first one visible to this task. The signal
# above arrives ten minutes before the time limit, and `--hours` stops earlier.
# Both save all runs, and the next task resumes them.
.venv/bin/python -m experiments.paper work \
  --slots="gpu:${CUDA_VISIBLE_DEVICES:-0},cpu" --hours=23.5 "$@" &
worker=$!
trap 'kill -TERM "$worker"' TERM
wait "$worker"
wait "$worker"
