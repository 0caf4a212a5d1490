# The verbs of this project; the same on a desk and in .ci/run. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PY := .venv/bin/python
PYTEST := $(PY) -m pytest

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

# Compiled once, not at every start of the hundreds of processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run
run: ## start OKMQ; Ctrl-C ends it
	@scripts/bootstrap run
	@exec $(PY) -m okmq.up

.PHONY: demo
demo: ## replay a year of real flights into the running OKMQ (make demo ARGS="--live 600")
	@scripts/bootstrap run
	@exec $(PY) -m okmq.demo $(ARGS)

.PHONY: dev
dev:
	@scripts/bootstrap dev

.PHONY: system
system:
	@scripts/system-packages

.PHONY: test
test: system dev ## everything: unit, Valkey, Redis, database, Spark, Chromium, scripts of the pages
	@scripts/test-js
	$(if $(ARGS),$(PYTEST) $(ARGS),scripts/test-all)

.PHONY: test-fast
test-fast: dev ## a look between two edits: Valkey and the database; no random runs, Spark, Chromium, whole product
	$(if $(ARGS),$(PYTEST) -m "not long and not (spark or e2e or running or install)" $(ARGS),scripts/test-all fast)

.PHONY: coverage
coverage: system dev ## the whole suite with branch coverage
	$(PYTEST) --cov --cov-report=term:skip-covered --cov-report=html $(ARGS)

.PHONY: e2e
e2e: system dev ## the tests in a real Chromium
	$(PYTEST) -m e2e $(ARGS)

.PHONY: check
check: dev lint types contracts ## what can be known without running it
	scripts/check-project

.PHONY: lint
lint: dev ## ruff
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

.PHONY: types
types: dev ## mypy --strict
	.venv/bin/mypy

.PHONY: contracts
contracts: dev ## which part may import which
	.venv/bin/lint-imports

.PHONY: audit
audit: dev ## known vulnerabilities of what is locked; asks PyPI, and fails for what PyPI does not tell about
	scripts/audit

.PHONY: format
format: dev ## rewrite the code as ruff wants it
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

.PHONY: bench
bench: dev ## measure publish and read on this machine
	@exec $(PY) -m bench $(ARGS)

.PHONY: prove
prove: ## kill and cut a product of its own under load, print what was lost (make prove ARGS=--quick: under 8 minutes)
	@scripts/bootstrap run
	@exec $(PY) manage.py okmq_prove --report docs/guarantees.md $(ARGS)

.PHONY: screenshots
screenshots: system dev ## the pictures of the README
	@exec $(PY) scripts/screenshots $(ARGS)

.PHONY: clean
clean: ## take away what was built; the data in var/ stays
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
