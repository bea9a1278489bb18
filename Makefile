# `make` lists the targets. Each sets up what it needs by itself; a second run finds the stamps and starts at once.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

export PYTHON ?=
BIN := .venv/bin
VENV := .venv/installed
JARS := .jars/resolved.txt
KAFKA_JARS := .jars-kafka/resolved.txt
SPARK := $(VENV) $(JARS)

# Asked while make reads this file: before anything slow begins, and with one line as the whole answer.
ifneq (,$(filter demo demo-live test docs conformance score bench chaos,$(MAKECMDGOALS)))
  JAVA_PROBLEM := $(shell JAVA_HOME='$(JAVA_HOME)' scripts/build/check_java.sh 2>&1)
  ifneq (,$(JAVA_PROBLEM))
    $(error $(JAVA_PROBLEM))
  endif
endif

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: $(SPARK) ## the main job on a bundled recording of a real Kafka cluster
	@$(BIN)/rebalance demo

.PHONY: demo-live
demo-live: $(SPARK) $(KAFKA_JARS) ## a real Kafka, real consumers that come to grief, and what is told of it as it happens: two minutes
	@$(BIN)/rebalance demo-live

.PHONY: test
test: $(SPARK) $(KAFKA_JARS) ## all tests
	@$(BIN)/pytest

.PHONY: test-fast
test-fast: $(VENV) ## the tests that need no Java
	@$(BIN)/pytest -m "not spark and not slow"

.PHONY: lint
lint: $(VENV) ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

.PHONY: format
format: $(VENV) ## put the code into the project's format
	@$(BIN)/ruff check --fix --exit-zero --quiet .
	@$(BIN)/ruff format .

.PHONY: docs
docs: $(SPARK) ## write what is generated in docs/: tables, claims, state diagram, questions
	@$(BIN)/python scripts/docs/tables.py
	@$(BIN)/python scripts/docs/claims.py
	@$(BIN)/python scripts/docs/state_diagram.py
	@$(BIN)/python scripts/docs/questions.py

.PHONY: conformance
conformance: $(SPARK) ## compare with Kafka: recorded steps, and brokers' own accounts (RECORDINGS="DIR ..." for others)
	@$(BIN)/python scripts/truth/traces.py
	@$(BIN)/python -m scripts.truth.conformance $(RECORDINGS)

.PHONY: score
score: $(SPARK) ## compare causes, culprits and findings with what was done to the recordings' consumers (RECORDINGS="DIR ...")
	@$(BIN)/python -m scripts.truth.score $(RECORDINGS)

.PHONY: coverage
coverage: $(VENV) ## branch coverage of coordinator_model by its own tests, none of them random: it has to be 100 %
	@COVERAGE="$(BIN)/coverage" scripts/coverage.sh

.PHONY: mutants
mutants: $(VENV) ## change the specification in one place after the other: does a test notice? (ONLY="sync join": these)
	@nice $(BIN)/python -m scripts.mutants.run $(ONLY)

.PHONY: bench
bench: $(SPARK) ## lines per second and memory over 5 million lines
	@$(BIN)/python bench/backfill.py

.PHONY: bench-model
bench-model: $(VENV) ## heartbeats a second, join and sync, snapshots: the specification alone
	@$(BIN)/python bench/bench_model.py

.PHONY: package
package: $(VENV) ## build what a Spark cluster needs of this project into dist/ (docs/cluster.md)
	@$(BIN)/python scripts/build/package.py

.PHONY: chaos
chaos: $(SPARK) $(KAFKA_JARS) ## kill -9 fifty times while it reads a topic, and compare the tables (ARGS="--kills 10 --seed 2")
	@$(BIN)/python -m scripts.chaos $(ARGS)

.PHONY: lock
lock: ## write requirements.lock again (UPGRADE=1: newest versions)
	@scripts/build/lock.sh

.PHONY: clean
clean: ## remove what was made, except for .venv, .jars, .jars-kafka and .ivy
	@rm -rf .demo .demo-live .bench .work build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage \
	  metastore_db derby.log spark-warehouse
	@find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

$(VENV): requirements.lock pyproject.toml scripts/build/setup_venv.sh
	@scripts/build/setup_venv.sh

$(JARS): jobs/common/places.py conf/ivysettings.xml scripts/build/resolve_jars.py $(VENV)
	@$(BIN)/python scripts/build/resolve_jars.py

$(KAFKA_JARS): jobs/common/places.py conf/ivysettings.xml scripts/build/resolve_jars.py $(VENV)
	@$(BIN)/python scripts/build/resolve_jars.py kafka
