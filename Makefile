# Every target sets up what it needs; the second time nothing is installed.
PYTHON_FULL := .venv/bin/python
PYTHON_CORE := .venv-core/bin/python
# Test processes; each loads JAX, and most TensorFlow too.
WORKERS ?= 2
PYTEST := -m pytest -n $(WORKERS) --dist loadfile

.PHONY: help setup demo test test-full test-core test-slow bench lint format \
  clean
.DEFAULT_GOAL := help

help:  ## This list.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1 \2/p' $(MAKEFILE_LIST) | \
	  while read -r name text; do printf 'make %-10s %s\n' $$name "$$text"; done

setup:  ## Makes .venv: Python 3.10 with the full stack.
	@scripts/setup.sh full

demo: setup  ## Pre-trains without rewards, then transfers; at most 10 minutes.
	@$(PYTHON_FULL) -m experiments.demo

test: test-full test-core  ## All tests but the slow ones, in both environments.

test-full: setup  ## The same, in .venv only.
	@$(PYTHON_FULL) $(PYTEST) -m 'not slow' tests

test-core:  ## The core's tests on a Python >= 3.12 with the newest JAX.
	@scripts/setup.sh core && status=0 || status=$$?; \
	case $$status in \
	  0) $(PYTHON_CORE) $(PYTEST) -m 'not slow' tests/core \
	       tests/layering_test.py tests/stack_test.py ;; \
	  3) echo 'skipped: the core on a newer Python, no Python 3.12' ;; \
	  *) exit $$status ;; \
	esac

test-slow: setup  ## Learning runs and whole programs, many minutes.
	@$(PYTHON_FULL) -m pytest -m slow tests

bench: setup  ## Measures against dm-acme, a quarter of an hour; keep the machine quiet.
	@$(PYTHON_FULL) -m pip install --quiet --no-deps -r requirements/bench.txt || \
	  echo 'FAISS cannot be installed: its rows are left out'
	@$(PYTHON_FULL) -m benchmarks --save

lint: setup  ## Format, lint and types.
	@status=0; \
	$(PYTHON_FULL) -m ruff format --check . || status=1; \
	$(PYTHON_FULL) -m ruff check . || status=1; \
	$(PYTHON_FULL) -m mypy || status=1; \
	exit $$status

format: setup  ## Formats the code and mends what ruff can.
	@$(PYTHON_FULL) -m ruff format .
	@$(PYTHON_FULL) -m ruff check --fix .

clean:  ## Removes both environments.
	rm -rf .venv .venv-core .tools
