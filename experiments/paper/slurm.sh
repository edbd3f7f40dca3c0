#!/bin/bash
# A worker of `python -m experiments.paper` for each task of a SLURM array.
#
#   sbatch --array=1-16 experiments/paper/slurm.sh --scale=gpu --folder=/shared/gpu
#
# Set what your cluster asks for: partition, account, memory, modules.
#SBATCH --job-name=bt-paper
#SBATCH --time=24:00:00
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=20
#SBATCH --signal=B:TERM@600
#SBATCH --requeue
#SBATCH --output=%x-%A_%a.log

cd "${SLURM_SUBMIT_DIR:?submit this script with sbatch}" || exit 1

# SLURM has chosen the GPU, which is the first that this task sees. The signal
# above comes ten minutes before the end, and `--hours` stops before that; either
# saves all runs, and the next task that starts continues them.
.venv/bin/python -m experiments.paper work \
  --slots="gpu:${CUDA_VISIBLE_DEVICES:-0},cpu" --hours=23.5 "$@" &
worker=$!
trap 'kill -TERM "$worker"' TERM
wait "$worker"
wait "$worker"
