# The main targets are demo and test. Both install what they need; Python 3.11 and Java 17 are prerequisites.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# With it set, every process would compile the library again.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help demo test up down status bench soak lint fmt docs clean lock

BIN := .venv/bin
INSTALLED := .venv/.installed
PYTEST := $(BIN)/python -m pytest

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(INSTALLED): requirements.txt pyproject.toml bin/setup
	@bin/setup

demo: $(INSTALLED) ## From nothing to replicated data you can look at
	@$(BIN)/python -m tidemark.cli.demo.main

test: lint ## All tests: checks, then the rings unit, spark and system
	@$(PYTEST) -n 2 --dist worksteal -p no:logging tests/unit
	@$(PYTEST) tests/spark
	@$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder tests/system

up: $(INSTALLED) ## Start Kafka, Cassandra, Spark and Airflow (SPARK=connect, local or cluster: kept until changed)
	@$(BIN)/tidemark services up $(if $(SPARK),--spark $(SPARK))

down: $(INSTALLED) ## Stop them; the data stays
	@$(BIN)/tidemark services down

status: $(INSTALLED) ## Show services and pipelines
	@$(BIN)/tidemark services status
	@$(BIN)/tidemark status

bench: $(INSTALLED) ## Measure, side by side in one run
	@$(BIN)/python bench/start.py
	@$(BIN)/python bench/run.py
	@$(BIN)/python bench/capture.py
	@$(BIN)/python bench/deliver.py
	@$(BIN)/python bench/journal.py
	@$(BIN)/python bench/whole_run.py
	@$(BIN)/python bench/read.py
	@$(BIN)/python bench/source.py
	@$(BIN)/python bench/verify.py
	@$(BIN)/python bench/compact.py
	@$(BIN)/python bench/bookkeeping.py
	@$(BIN)/python bench/expiry.py
	@$(BIN)/python bench/work.py
	@$(BIN)/python bench/follow.py
	@$(BIN)/python bench/collection.py
	@$(BIN)/python bench/rebuild.py
	@$(BIN)/python bench/oplog.py

soak: $(INSTALLED) ## Long randomized tests, half an hour or more: histories with kills, load with compaction, re-created topics and tables, an hour of follow (needs make up)
	@$(BIN)/python tests/soak/journal_history.py --seeds 1,2,3 --runs 50 --kills 20
	@$(BIN)/python tests/soak/compaction.py --minutes 10
	@$(BIN)/python tests/soak/recreation.py --seeds 20
	@$(BIN)/python tests/soak/follow.py --minutes 60

lint: $(INSTALLED) ## Style, formatting and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy

fmt: $(INSTALLED) ## Format the code and sort its imports
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format .

docs: $(INSTALLED) ## Write docs/dags.md from the DAGs, and the map in docs/architecture.md from the imports
	@$(BIN)/python docs/generate.py
	@$(BIN)/python docs/map.py

clean: $(INSTALLED) ## Stop everything and remove its data (the downloaded jars stay)
	@$(BIN)/tidemark services clean --execute

lock: $(INSTALLED) ## Compile requirements.in to requirements.txt, keeping the versions already there
	@$(BIN)/uv pip compile --quiet --python-version 3.11 --no-annotate --no-emit-index-url \
	  --custom-compile-command "make lock" requirements.in -o requirements.txt
