# make demo · make test · make lint · make docs · make chaos · make bench · make bench-peers: each sets itself up on a machine that has Python 3.11 or newer.
.DEFAULT_GOAL := help
.PHONY: help demo test lint format docs bench bench-peers bench-check chaos

PYTHON ?= python3
DURATION ?= 60
SEED ?= 1
BIN := .venv/bin
READY := .venv/ready
PEERS := benchmarks/peers

help:
	@echo "make demo [FOLDER=path]  the main job: a folder of files, a worker killed on the way, nothing lost"
	@echo "make test                all tests"
	@echo "make chaos [DURATION=seconds] [SEED=number]"
	@echo "                         kills, freezes, cuts and restarts under load; writes docs/chaos-report.md"
	@echo "make lint                style, types, import directions"
	@echo "make docs                the page on commands, from the commands"
	@echo "make bench               speed on this machine, beside its ceilings"
	@echo "make bench-peers         dtq beside other task queues, which it installs; writes into docs/performance.md"
	@echo "make bench-check         fails when a task costs a fifth more than recorded"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "dtq needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,embedded,api,dashboard,sql]'
	@touch $@

demo: $(READY)
	$(BIN)/dtq demo $(FOLDER)

test: $(READY)
	$(BIN)/pytest --numprocesses 2 --dist worksteal

chaos: $(READY)
	PYTHONPATH=tests $(BIN)/python -m chaos --duration $(DURATION) --seed $(SEED)
	MANY_STARTS=200 $(BIN)/pytest tests/processes/test_many_starts.py

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)
	$(BIN)/python -m dtq_cli.reference docs/cli.md

bench: $(READY)
	$(BIN)/python benchmarks/run.py

bench-peers: $(READY) $(PEERS)/.venv-newest/ready $(PEERS)/.venv-older-client/ready $(PEERS)/node_modules
	$(BIN)/python benchmarks/compare.py --json docs/performance.json
	$(BIN)/python benchmarks/report.py

bench-check: $(READY)
	$(BIN)/python benchmarks/check.py

$(PEERS)/.venv-newest/ready: $(PEERS)/requirements.txt
$(PEERS)/.venv-older-client/ready: $(PEERS)/requirements-older-client.txt
$(PEERS)/.venv-%/ready:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# BullMQ takes part only where Node exists.
$(PEERS)/node_modules: $(PEERS)/package.json
	@if command -v npm; then cd $(PEERS) && npm install --no-audit --no-fund --no-package-lock; \
		else echo "no npm: BullMQ is left out"; mkdir -p $@; fi
	@touch $@
