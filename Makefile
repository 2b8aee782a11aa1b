PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test lint bench docs vendor clean
.DEFAULT_GOAL := help

help:  ## say what each target does
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.run  ## run every example, one line each: sizes, error against numpy, times
	$(BIN)/python -m pypto.tools.demo

test: $(VENV)/.develop  ## run the whole test suite
	$(BIN)/python -m pytest -n $(JOBS)

lint: $(VENV)/.develop  ## ruff and pyright
	$(BIN)/ruff check
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(VENV)/.run  ## time import, parse, every pass, codegen and simulation
	$(BIN)/python benchmarks/compile_time.py
	$(BIN)/python benchmarks/ir_scale.py

docs: $(VENV)/.run  ## regenerate the operator reference and the type stub
	$(BIN)/python -m pypto.tools.docs
	$(BIN)/python -m pypto.tools.stubs

vendor: $(VENV)/.develop  ## have the real assembler and the tile library judge what the tests emit; ARGS=--help
	PYTHONPATH=tests $(BIN)/python -m vendor $(ARGS)

clean:  ## remove the virtual environment and everything built
	rm -rf $(VENV) build dist build_output .pytest_cache .ruff_cache .hypothesis

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "PyPTO needs Python 3.10 or newer; name one with make PYTHON=python3.x"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "python3 -m venv failed; on Debian or Ubuntu: apt-get install python3-venv"; rm -rf $(VENV); exit 1; }
	@touch $@

# The stamps depend on pyproject.toml, so a changed dependency is installed and nothing else is repeated.
$(VENV)/.run: pyproject.toml $(VENV)/.made
	$(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/.develop: pyproject.toml $(VENV)/.made
	$(PIP_INSTALL) --editable '.[test,lint]'
	@touch $@ $(VENV)/.run
