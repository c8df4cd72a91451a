# Everything a newcomer needs, from a fresh clone: git, make, Python >= 3.11 and a package registry.
# Each target sets itself up first; `make` alone lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DISTS := . $(sort $(wildcard plugins/*))
PYPROJECTS := pyproject.toml $(sort $(wildcard plugins/*/pyproject.toml))
LOCKS := engine/locks
PIP := $(BIN)/python -m pip --disable-pip-version-check
ARGS ?=
SEEDS ?= 200
MODEL ?= whole
KILLS ?= 1000
FREEZES ?= 200
MODULES ?= planner release outcomes status schedule settling order identity canonical redaction disguises
SECONDS ?=
SYSTEMS := PYTHONPATH=tests $(BIN)/python -m systems

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-real coverage mutation fuzz sim model crash chaos lint format docs wheel wheel-check lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.editable ## build .venv from the hashed lock, with amends and the six plugins

# Third parties: again only when the lock changed.
$(VENV)/.locked: $(LOCKS)/dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "amends needs Python >= 3.11; name one with: make setup PYTHON=python3.x" >&2; exit 1; }
	@echo "setting up $(VENV) from $<" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -qq install --require-hashes --no-deps -r $<
	@touch $@

# Our own distributions, editable: again only when a pyproject.toml changed. No resolver, no download.
$(VENV)/.editable: $(VENV)/.locked $(PYPROJECTS)
	@$(PIP) -qq install --no-deps --no-build-isolation $(addprefix --editable ,$(DISTS))
	@$(PIP) --quiet check
	@touch $@

demo: setup ## kill an agent in mid-run, recover it in another process, and the same run without Amends
	@$(BIN)/python -m amends.testing.demo $(ARGS)

test: setup ## run every test but the real tier's, on every core; ARGS="-k name" narrows
	@$(SYSTEMS) install pip
	@$(BIN)/python -m pytest --numprocesses auto --dist worksteal $(ARGS)

# What a killed test process left behind is ended by process id, whether the tests passed or not.
test-real: setup ## install and start the independent systems (PostgreSQL, Unleash, Vendure, ...) and run tests/real
	@$(SYSTEMS) install real
	@$(SYSTEMS) list
	@trap '$(SYSTEMS) sweep' EXIT; \
	  $(BIN)/python -m pytest --numprocesses auto --dist worksteal tests/real $(ARGS)

coverage: setup ## run the core's own tests; fails unless they take every branch of it
	@CI=true $(BIN)/python -m coverage run --branch --source amends.core -m pytest tests/unit/core $(ARGS)
	@$(BIN)/python -m coverage report --show-missing --skip-covered --fail-under 100

mutation: .mutation/.locked ## change the core in small ways that its tests must notice; MODULES="order" SECONDS=600 narrow it
	@PYTHONPATH=tests .mutation/venv/bin/python -m mutation $(if $(SECONDS),--seconds $(SECONDS)) $(MODULES)

.mutation/.locked: $(LOCKS)/mutation.lock
	@$(PYTHON) -m venv .mutation/venv
	@.mutation/venv/bin/python -m pip --disable-pip-version-check -qq install --require-hashes --no-deps -r $<
	@touch $@

fuzz: .fuzz/.locked ## give every reader of others' text what a fuzzer makes up, SECONDS each; ARGS="policy" narrows it (Linux)
	@PYTHONPATH=tests:engine:plugins/http/src .fuzz/venv/bin/python -m fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(ARGS)

.fuzz/.locked: $(LOCKS)/fuzz.lock
	@$(PYTHON) -m venv .fuzz/venv
	@.fuzz/venv/bin/python -m pip --disable-pip-version-check -qq install --require-hashes --no-deps -r $<
	@touch $@

sim: setup ## play SEEDS simulated worlds (default 200) and hold the engine's rules against each; ARGS="--seed N" replays one
	@$(BIN)/python -m amends.testing.simulation --seeds $(SEEDS) $(ARGS)

model: setup ## go through every world of a small configuration; MODEL=small takes a minute
	@$(BIN)/python -m amends.testing.simulation --model $(MODEL)

chaos: setup ## kill and freeze real processes at random moments, KILLS and FREEZES of them (default 1000 and 200); ARGS="--seed N"
	@$(BIN)/python -m amends.testing.crash.chaos --kills $(KILLS) --freezes $(FREEZES) $(ARGS)

crash: setup ## kill and freeze real processes at every point, recover, count at the systems; ARGS=--short takes a minute
	@$(BIN)/python -m amends.testing.crash.matrix $(ARGS)

lint: setup ## style, format, types (mypy, pyright), import layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	MYPYPATH=tests $(BIN)/mypy --package systems --package mutation --package fuzz
	$(BIN)/pyright --warnings
	$(BIN)/lint-imports --no-logo

format: setup ## rewrite the sources as `lint` wants them
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

docs: setup ## run the documents' examples; hold their tables, commands and links against the code
	@$(BIN)/python -m pytest tests/docs $(ARGS)

wheel: setup ## build the seven wheels into dist/
	@rm -rf dist
	@$(PIP) -qq wheel --no-deps --no-build-isolation --wheel-dir dist $(addprefix ./,$(DISTS))
	@ls -1 dist

wheel-check: wheel ## install the built wheels in an empty environment, without the sources, and use them
	@rm -rf build/wheel-check && mkdir -p build/wheel-check/project
	@$(PYTHON) -m venv build/wheel-check/venv
	@build/wheel-check/venv/bin/python -m pip --disable-pip-version-check -qq install --require-hashes --no-deps -r $(LOCKS)/runtime.lock
	@build/wheel-check/venv/bin/python -m pip --disable-pip-version-check -qq install --no-deps dist/*.whl
	@cd build/wheel-check/project && export PATH="$$PWD/../venv/bin:$$PATH" && \
	  amends init && amends doctor && amends scenario run billing-field

lock: ## pin and hash the dependencies and the tests' systems again; UPGRADE=1 takes newer versions
	@test -x .uv/bin/uv || { $(PYTHON) -m venv .uv && .uv/bin/python -m pip --disable-pip-version-check -qq install "uv>=0.13,<0.14"; }
	@cd $(LOCKS) && for name in runtime dev mutation fuzz; do \
	  ../../.uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade) \
	    $$(test $$name = runtime || echo --constraint runtime.lock) $$name.in --output-file $$name.lock || exit 1; \
	done
	@PYTHONPATH=tests .uv/bin/python -m systems lock $(if $(UPGRADE),--upgrade)

clean: ## remove the environments, the tests' systems, caches and builds
	rm -rf $(VENV) .uv .mutation .fuzz .systems dist build .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
