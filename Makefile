# Every target sets up what it needs. The second time, nothing is installed.
PYTHON_FULL := .venv/bin/python
PYTHON_CORE := .venv-core/bin/python
PYTHON_COLAB := .venv-colab/bin/python
# Test processes: one more than the two cores that the tests are meant for, because
# tests of programs wait for other processes. Each takes some GB. Files are handed out
# in the order of tests/conftest.py. Under nohup standard input cannot be read, and
# elsewhere it may be closed.
WORKERS ?= 3
PYTEST := -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder </dev/null
# What runs without Acme, on a newer Python: the core, and what depends on the
# newest packages around it.
CORE_TESTS := tests/core tests/layering_test.py tests/installation_test.py \
  $(addprefix tests/environments/,chain_test.py minigrid_test.py recall_test.py) \
  tests/evaluation/intervals_test.py \
  tests/runtime/engines/in_process_test.py::test_what_a_run_leaves_behind \
  $(addprefix tests/api/api_test.py::test_,a_run_has_what_it_learned figures a_video) \
  tests/launch/in_process_test.py::test_ctrl_c_saves_and_the_same_command_goes_on \
  tests/notebooks_test.py
# With the packages of a Colab: what a user does there.
COLAB_TESTS := tests/notebooks_test.py

.PHONY: help setup environments demo paper ray test test-full test-core \
  test-colab test-slow notebooks simulate chaos soak mutants bench lint format clean
.DEFAULT_GOAL := help

help:  ## Shows this list.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1 \2/p' $(MAKEFILE_LIST) | \
	  while read -r name text; do printf 'make %-10s %s\n' $$name "$$text"; done

setup:  ## Makes .venv: Python 3.10 with the full stack.
	@scripts/setup.sh full

demo: setup  ## Pre-trains without rewards, then transfers: at most 5 minutes.
	@$(PYTHON_FULL) -m experiments.demo

paper: setup  ## A table or figure of the paper: ARTIFACT=table3 SCALE=smoke.
	@$(PYTHON_FULL) -m experiments.paper $(or $(ARTIFACT),list) \
	  --scale=$(or $(SCALE),smoke)

# One environment waits for downloads while another is unpacked. What fails here is
# tried again, and told, by the target that needs it.
environments:
	@$(MAKE) --no-print-directory -k -j4 \
	  $(addprefix environment-,full ray core colab) || true

environment-%:
	@scripts/setup.sh $*

# What fails in one environment does not hide what the others show.
test: environments  ## All tests but the slow ones, in three environments.
	@$(MAKE) --no-print-directory --keep-going test-full test-core test-colab

test-full: setup  ## The tests in .venv only; those of Ray use .venv-ray.
	@scripts/setup.sh ray || echo 'skipped: runs on Ray, no Python 3.12'
	@$(PYTHON_FULL) $(PYTEST) -m 'not slow' tests

ray:  ## Makes .venv-ray, for runs on several machines (--lp_launch_type=ray).
	@scripts/setup.sh ray

test-core:  ## The core's tests on Python >= 3.12 with the newest JAX.
	@scripts/setup.sh core && status=0 || status=$$?; \
	case $$status in \
	  0) $(PYTHON_CORE) $(PYTEST) -m 'not slow' $(CORE_TESTS) ;; \
	  3) echo 'skipped: the core on a newer Python, no Python 3.12' ;; \
	  *) exit $$status ;; \
	esac

test-colab:  ## The notebooks with the packages that a Colab has.
	@scripts/setup.sh colab && status=0 || status=$$?; \
	case $$status in \
	  0) $(PYTHON_COLAB) $(PYTEST) --dist load -m 'not slow' $(COLAB_TESTS) ;; \
	  3) echo 'skipped: the packages of a Colab, no Python 3.12' ;; \
	  *) exit $$status ;; \
	esac

test-slow: setup  ## Runs that learn, and whole programs: many minutes.
	@$(PYTHON_FULL) -m pytest -m slow tests

simulate: setup  ## Runs in simulated time under FAILURES=1000000 failures.
	@$(PYTHON_FULL) -m tests.simulation --failures=$(or $(FAILURES),1000000)

chaos: setup  ## A run on three machines under FAULTS=100 faults: an hour or two.
	@$(PYTHON_FULL) -m tests.launch.chaos --faults=$(or $(FAULTS),100)

soak: setup  ## Does a long run keep its memory, files and threads? MINUTES=60
	@$(PYTHON_FULL) -m tests.launch.soak --minutes=$(or $(MINUTES),60)

mutants: setup  ## The share of MUTANTS=300 wrong tokens that the tests notice.
	@$(PYTHON_FULL) -m tests.mutants --mutants=$(or $(MUTANTS),300) --jobs=2

bench: setup  ## Compares speed with dm-acme: 15 minutes on a quiet machine.
	@$(PYTHON_FULL) -m pip install --quiet --no-deps -r requirements/bench.txt || \
	  echo 'FAISS cannot be installed, so its rows are left out.'
	@$(PYTHON_FULL) -m benchmarks --save

lint: setup  ## Checks format, lint and types.
	@status=0; \
	$(PYTHON_FULL) -m ruff format --check . || status=1; \
	$(PYTHON_FULL) -m ruff check . || status=1; \
	$(PYTHON_FULL) -m mypy || status=1; \
	exit $$status

format: setup  ## Formats the code and fixes what ruff can.
	@$(PYTHON_FULL) -m ruff format .
	@$(PYTHON_FULL) -m ruff check --fix .

notebooks: setup  ## Makes the notebooks of their sources; OWNER=name in their links.
	@$(PYTHON_FULL) scripts/make_notebooks.py $(OWNER)

clean:  ## Removes the environments and all caches.
	rm -rf .venv .venv-core .venv-colab .venv-ray .tools .pytest_cache .ruff_cache .mypy_cache
