# make demo · make test · make lint · make docs · make chaos · make bench: each sets itself up on a machine that has Python 3.11 or newer.
.DEFAULT_GOAL := help
.PHONY: help demo test lint format docs bench chaos

PYTHON ?= python3
DURATION ?= 60
SEED ?= 1
BIN := .venv/bin
READY := .venv/ready

help:
	@echo "make demo [FOLDER=path]  the main job: a folder of files, a worker killed on the way, nothing lost"
	@echo "make test                all tests"
	@echo "make chaos [DURATION=seconds] [SEED=number]"
	@echo "                         kills, freezes, cuts and restarts under load; writes docs/chaos-report.md"
	@echo "make lint                style, types, import directions"
	@echo "make docs                the page on commands, from the commands"
	@echo "make bench               speed on this machine, beside its ceilings"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "dtq needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,embedded,api,sql]'
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
