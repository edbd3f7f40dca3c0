#!/usr/bin/env bash
# Compiles the pins of all environments; requires `uv` and a network connection.
#
# Options are passed to `uv pip compile`: `--upgrade`, `--upgrade-package jax`, ...
# Without options, only pins affected by changes of the .in files are updated.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../requirements"
compile() { uv pip compile --quiet --no-header "$@"; }
compile "$@" --python-version 3.10 full.in -o full.txt
compile "$@" --universal --python-version 3.10 dev.in notebooks.in -c full.txt -o dev.txt
compile "$@" --python-version 3.12 core.in -c dev.txt -o core.txt
compile "$@" --python-version 3.13 core.in -c colab.in -c dev.txt -o colab.txt
compile "$@" --python-version 3.10 bench.in -c full.txt -o bench.txt
compile "$@" --python-version 3.12 ray.in -o ray.txt
compile "$@" --python-version 3.12 docs.in -o docs.txt
compile "$@" --python-version 3.12 accelerators.in -c core.txt -c dev.txt -o accelerators.txt
