# `make` lists the targets. Everything is installed into .venv; the pins are in requirements/.
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
ARGS ?=
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install
PINS := device server dev build

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-long check pins clean tests-prerequisites

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: .venv/server.stamp ## run the server and 50 devices; options go into ARGS="--seconds 20 --json"
	@$(BIN)/fencepost demo $(ARGS)

# What is slow has a database or a machine to itself; 5 is pytest's word for "none of those were asked for".
test: tests-prerequisites check ## format, lint, types and all tests; installs what they need
	$(BIN)/pytest -n 2 -m "not slow and not long" $(ARGS) || [ $$? -eq 5 ]
	$(BIN)/pytest -m "slow and not long" $(ARGS) || [ $$? -eq 5 ]

test-fast: tests-prerequisites ## the inner loop: tests that are not slow, two at a time
	$(BIN)/pytest -n 2 -m "not slow and not long" $(ARGS)

test-long: tests-prerequisites ## the full sizes of the promises; writes benchmarks/results/*.json
	FENCEPOST_FULL=1 $(BIN)/pytest -m long $(ARGS)

check: .venv/dev.stamp ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

pins: .venv/bin/python ## recompile requirements/*.txt; ARGS=--upgrade takes newer versions
	@$(PIP) uv
	@$(BIN)/python scripts/compile_pins.py $(ARGS)

clean: ## remove the virtual environment and everything built
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

tests-prerequisites: .venv/dev.stamp
	@$(PYTHON) scripts/prerequisites.py tests

.venv/bin/python:
	@$(PYTHON) scripts/prerequisites.py python
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

# The project itself is built by the pinned hatchling, so nothing but the pins comes from the package index.
.venv/%.stamp: requirements/%.txt requirements/build.txt pyproject.toml | .venv/bin/python
	@echo "Installing requirements/$*.txt into .venv (a minute the first time)" >&2
	@$(PIP) -r requirements/build.txt -r requirements/$*.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@
