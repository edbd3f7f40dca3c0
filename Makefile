# Every target sets up its environment; once that is up to date, nothing is installed.
PYTHON_FULL := .venv/bin/python
PYTHON_CORE := .venv-core/bin/python
PYTHON_COLAB := .venv-colab/bin/python
PYTHON_ACCEL := .venv-accel/bin/python
# Number of test processes: one more than the two cores of the reference machine,
# because tests of programs wait for other processes. Each uses several GB. The order of
# files is defined in tests/conftest.py. Standard input is redirected, because it cannot
# be read under nohup and may be closed elsewhere. A test process that has ended is not
# replaced, because the test that ended it would run again.
WORKERS ?= 3
PYTEST := -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
  --max-worker-restart=0 </dev/null
# Ends tests that do not end by themselves, in spite of the limit in pyproject.toml.
LIMITED := timeout --foreground --signal=INT --kill-after=60
# Tests that run without Acme, on a newer Python: the core, and code that depends on
# the newest versions of other packages.
CORE_TESTS := tests/core tests/accelerators_test.py tests/layering_test.py tests/installation_test.py \
  $(addprefix tests/environments/,chain_test.py minigrid_test.py recall_test.py) \
  tests/evaluation/intervals_test.py \
  $(addprefix tests/api/api_test.py::test_,results_of_a_run plots video) \
  tests/launch/in_process_test.py::test_ctrl_c_saves_and_the_same_command_resumes
# Tests with the packages of Colab: only the notebooks.
COLAB_TESTS := tests/notebooks_test.py

# Sets up an environment and runs a command that needs it: environment, subject, command.
# scripts/setup.sh exits with 3 if the required Python is missing, and with 4 if optional
# packages are; both only skip the command. Any other failure is one of the target.
if_set_up = scripts/setup.sh $(1) && status=0 || status=$$?; \
	case $$status in \
	  0) $(3) ;; \
	  3) echo 'skipped: $(2), because Python 3.12 is missing' ;; \
	  4) echo 'skipped: $(2), because its packages could not be installed' ;; \
	  *) exit $$status ;; \
	esac

.PHONY: help setup environments demo demo-full demo-bank paper docs docs-serve ray test \
  test-full test-core test-colab test-accelerators test-slow notebooks simulate chaos \
  soak mutants bench gpu-check lint format owner clean
.DEFAULT_GOAL := help

help:  ## Show this list.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1 \2/p' $(MAKEFILE_LIST) | \
	  while read -r name text; do printf 'make %-10s %s\n' $$name "$$text"; done

setup:  ## Create .venv: Python 3.10 with the full stack.
	@scripts/setup.sh full

demo: setup  ## Transfer the behavior that comes with the package: 3 to 12 minutes.
	@$(PYTHON_FULL) -m experiments.demo

demo-full: setup  ## Pre-train without rewards, then transfer.
	@$(PYTHON_FULL) -m experiments.demo --full --workdir=runs/demo_full

demo-bank: setup  ## Learn which of several behaviors helps: about ten minutes.
	@$(PYTHON_FULL) -m experiments.demo --bank --workdir=runs/demo_bank

paper: setup  ## Reproduce a table or figure of the paper: ARTIFACT=table3 SCALE=smoke.
	@$(PYTHON_FULL) -m experiments.paper $(or $(ARTIFACT),list) \
	  --scale=$(or $(SCALE),smoke)

# Parallel, because one environment can download while another is unpacked. A failure is
# ignored here: the target that needs the environment tries again and reports it.
environments:
	@$(MAKE) --no-print-directory -k -j4 \
	  $(addprefix environment-,full ray core colab docs) || true

environment-%:
	@scripts/setup.sh $*

# A failure in one environment does not hide the results of the others.
test: environments  ## Run all tests except the slow ones, in three environments.
	@$(MAKE) --no-print-directory --keep-going test-full test-core test-colab

test-full: setup  ## Run the tests in .venv only; tests of Ray use .venv-ray.
	@$(call if_set_up,ray,tests of Ray,:)
	@$(call if_set_up,docs,tests of the documentation,:)
	@$(LIMITED) 3600 $(PYTHON_FULL) $(PYTEST) -m 'not slow' tests

docs:  ## Build the documentation: docs/_build/html/index.html.
	@scripts/setup.sh docs
	@.venv-docs/bin/python -m sphinx -q -W --keep-going -E docs docs/_build/html

docs-serve: docs  ## Serve the documentation at http://localhost:8000.
	@.venv-docs/bin/python -m http.server 8000 --bind localhost \
	  --directory docs/_build/html

ray:  ## Create .venv-ray, for runs on several machines (--lp_launch_type=ray).
	@scripts/setup.sh ray

test-core:  ## Run the tests of the core on Python >= 3.12 with the newest JAX.
	@$(call if_set_up,core,tests of the core,\
	  $(LIMITED) 1800 $(PYTHON_CORE) $(PYTEST) -m 'not slow' $(CORE_TESTS))

test-colab:  ## Run the notebooks with the packages of Colab.
	@$(call if_set_up,colab,notebooks on Colab,\
	  $(LIMITED) 1800 $(PYTHON_COLAB) $(PYTEST) --dist load -m 'not slow' $(COLAB_TESTS))

test-accelerators:  ## Compile for TPUs, with packages of 600 MB and no device.
	@$(call if_set_up,accelerators,compilation for accelerators,\
	  $(PYTHON_ACCEL) -m pytest -o faulthandler_timeout=5400 \
	  tests/accelerators_test.py </dev/null)

test-slow: setup  ## Run the tests of learning and of whole programs: many minutes.
	@$(PYTHON_FULL) -m pytest -m slow -o faulthandler_timeout=10800 tests

simulate: setup  ## Simulate runs under FAILURES=1000000 failures.
	@$(PYTHON_FULL) -m tests.simulation --failures=$(or $(FAILURES),1000000)

chaos: setup  ## Test a run on three machines under FAULTS=100 faults: one or two hours.
	@$(PYTHON_FULL) -m tests.launch.chaos --faults=$(or $(FAULTS),100)

soak: setup  ## Test a long run for leaks of memory, files and threads: MINUTES=60.
	@$(PYTHON_FULL) -m tests.launch.soak --minutes=$(or $(MINUTES),60)

mutants: setup  ## Measure how many of MUTANTS=300 wrong tokens the tests detect.
	@$(PYTHON_FULL) -m tests.mutants --mutants=$(or $(MUTANTS),300) --jobs=2

bench: setup  ## Compare speed with dm-acme: 15 minutes on an idle machine.
	@$(PYTHON_FULL) -m pip install --quiet --no-deps -r requirements/bench.txt || \
	  echo 'FAISS could not be installed; its rows are omitted.'
	@$(PYTHON_FULL) -m benchmarks --save

gpu-check: setup  ## Measure an NVIDIA GPU in ten minutes: gpu_check.md.
	@if nvidia-smi >/dev/null 2>&1 && \
	  ! $(PYTHON_FULL) -c 'import jax_cuda12_plugin' 2>/dev/null; then \
	  echo 'installing the CUDA packages of JAX, several GB'; \
	  $(PYTHON_FULL) -m pip install --quiet --no-build-isolation \
	    --editable '.[cuda12]' || exit 1; \
	fi
	@$(PYTHON_FULL) -m benchmarks.gpu_check $(ARGS)

lint: setup  ## Check format, lint and types.
	@status=0; \
	$(PYTHON_FULL) -m ruff format --check . || status=1; \
	$(PYTHON_FULL) -m ruff check . || status=1; \
	$(PYTHON_FULL) -m mypy || status=1; \
	exit $$status

format: setup  ## Format the code and apply fixes of ruff.
	@$(PYTHON_FULL) -m ruff format .
	@$(PYTHON_FULL) -m ruff check --fix .

notebooks: setup  ## Generate the notebooks from their sources.
	$(if $(filter command,$(origin OWNER)),$(error use make owner OWNER=$(OWNER)))
	@$(PYTHON_FULL) scripts/make_notebooks.py

owner:  ## Set the GitHub account in all links: OWNER=name.
	@python3 scripts/set_owner.py $(OWNER)

clean:  ## Remove the environments and all caches.
	rm -rf .venv .venv-core .venv-colab .venv-ray .venv-docs .venv-accel docs/_build .tools .pytest_cache .ruff_cache .mypy_cache
