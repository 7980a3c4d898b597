# Needs Python (3.11 or newer, with its venv module) and make; everything else is installed into $(VENV).
#
#   make demo    run the bundled miniature planet accelerated, for about a minute, ending with accel's report
#   make check   ruff, mypy, and a part of the tests in under two minutes: for every change before it is committed
#   make test    all tests, the documents, ruff and mypy; it says how far it is
#   make test-all  the tests in their long form: every function, dtype and shape, ten times as many random programs or more,
#                programs compiled with all of LLVM's optimizations. It takes hours
#   make docs    the documents as pages in build/site; warnings are errors
#   make test-matrix  a part of the tests on the oldest and the newest NumPy, SciPy, JAX and wrapt, for each Python
#                from 3.11 to 3.14, which must be on the PATH; FULL=1: all tests
#   make dist-test  build the source distribution and the wheel, warnings being errors, and try the wheel in fresh
#                environments of the lowest and the newest Python
#   make bench   run all benchmarks, tables and plots going to build/bench; QUICK=1 only tries them out
#
# PYTHON=python3.12 chooses the interpreter, DAYS=2 the length of the demo in planet days. Benchmarks on PyGCM itself
# find its checkouts by QD_PYGCM_PATH=old:new.

PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin

.PHONY: demo check test test-all test-matrix dist-test lint docs bench clean

demo: $(VENV)/.demo
	$(if $(DAYS),QD_SIM_DAYS=$(DAYS)) $(BIN)/python -m accel.run --demo
	@echo "now: . $(BIN)/activate"

# Processes that tests start read accel's bytecode, where the environment would have each of them compile its own.
unexport PYTHONDONTWRITEBYTECODE

# By `worksteal` a file's tests run in one process, nearly all of them, and find there what its other tests compiled.
PYTEST = $(BIN)/python -m pytest -n auto --dist worksteal --durations=10 --durations-min=10

# No whole programs, few processes, no compiling of many programs: what a slip of the pen breaks first.
CHECKED = $(filter-out tests/test_second_process.py tests/test_examples.py,$(wildcard tests/test_*.py)) \
          $(addprefix tests/platform/test_,config.py logs.py project.py reasons.py versions.py ledger.py) \
          tests/entry/hook tests/ir tests/record tests/reports tests/tools/cli/test_commands.py

check: $(VENV)/.test
	@echo "check, 1 of 2: ruff and mypy"
	@$(MAKE) --no-print-directory lint
	@echo "check, 2 of 2: a part of the tests"
	@$(BIN)/python -m pytest -n auto -q $(CHECKED)

test: $(VENV)/.test
	@echo "test, 1 of 3: ruff and mypy"
	@$(MAKE) --no-print-directory lint
	@echo "test, 2 of 3: the documents"
	@$(MAKE) --no-print-directory docs
	@echo "test, 3 of 3: all tests, with the part that is done at the end of each line"
	@$(PYTEST)

test-all: $(VENV)/.test
	ACCEL_LONG_TESTS=1 $(PYTEST)

test-matrix: $(VENV)/.test
	$(BIN)/python -m nox

dist-test: $(VENV)/.test
	rm -rf build/dist
	$(BIN)/python -W error -m build --outdir build/dist
	$(BIN)/python -m nox -s dist

lint: $(VENV)/.test
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

docs: $(VENV)/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

bench: $(VENV)/.demo
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build *.egg-info

# One stamp per set of extras; the project itself is installed editable, so that only a change of its
# dependencies needs an install.
$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[demo,test,peers,dev]'
	touch $@

$(VENV)/bin/python:
	$(PYTHON) -c "import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	    'accel needs Python 3.11 or newer; this is %d.%d. Set PYTHON=...' % sys.version_info[:2])"
	$(PYTHON) -m venv $(VENV)
