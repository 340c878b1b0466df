# `make demo` and `make test` need Python 3.10 or newer, make and git; everything else goes into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test lint types imports unit mutation bench clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "madengine needs Python 3.10 or newer, this is " + sys.version.split()[0] + "; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run-ready: pyproject.toml | $(BIN)/python
	@echo "installing madengine into $(VENV)"
	@$(PIP) install -e .
	@touch $@

$(VENV)/.dev-ready: pyproject.toml | $(BIN)/python
	@echo "installing madengine and its checks into $(VENV)"
	@$(PIP) install -e '.[dev,yaml]'
	@touch $@ $(VENV)/.run-ready

demo: $(VENV)/.run-ready ## Run the bundled package on this machine, without Docker or GPU
	@sh examples/demo.sh $(abspath $(BIN)/madengine)

test: lint types imports unit ## Run all checks and tests

lint: $(VENV)/.dev-ready ## ruff: lint and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev-ready ## mypy --strict
	$(BIN)/mypy

imports: $(VENV)/.dev-ready ## The floors of the house: no module imports upwards
	$(BIN)/lint-imports

unit: $(VENV)/.dev-ready ## pytest, with line coverage (at least 90 %); starts a Slurm cluster where it can
	tests/services/slurm_cluster.sh during $(BIN)/pytest -n auto --dist loadfile --cov --cov-report=term --cov-fail-under=90

mutation: $(VENV)/.dev-ready ## Mutation testing of judge, quoting and parsing
	$(BIN)/python tests/mutation/run.py

bench: $(VENV)/.dev-ready ## Measure what CONTRIBUTING promises; results go to benchmarks/results
	$(BIN)/python -m benchmarks

clean: ## Remove what make made
	rm -rf $(VENV) dist build .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis mutants
