# `make` lists the targets. Each target first installs what it needs; later runs skip that.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

export PYTHON ?=
# Python keeps what it compiled, whatever the caller's environment says: most processes here are short.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
VENV := .venv/installed
JARS := .jars/resolved.txt
S3_JARS := .jars-s3/resolved.txt
KAFKA_JARS := .jars-kafka/resolved.txt
CLASSES := .jars/classes.txt
KAFKA_CLASSES := .jars-kafka/classes.txt
SPARK := $(VENV) $(JARS)
# Six processes keep two cores busy where tests wait for brokers and consumers. Those that wait for nothing run beside them.
# tests/conftest.py says which tests stay together.
SIDE_BY_SIDE := --dist loadscope --no-loadscope-reorder

# Programs that some tests start where they are installed.
DEBIAN_PACKAGES := chromium-headless-shell prometheus prometheus-alertmanager

# Java is checked while make reads this file, so that a missing Java ends make with one line before anything slow begins.
ifneq (,$(filter demo demo-live test test-long bench bench-scale archive chaos record,$(MAKECMDGOALS)))
  JAVA_PROBLEM := $(shell { python=$$(PYTHON='$(PYTHON)' scripts/build/find_python.sh) && JAVA_HOME='$(JAVA_HOME)' $$python -m jobs.common.java; } 2>&1)
  ifneq (,$(JAVA_PROBLEM))
    $(error $(JAVA_PROBLEM))
  endif
endif

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: install
install: $(VENV) ## install the command rebalance into .venv; this needs no Java

.PHONY: demo
demo: $(SPARK) ## run the pipeline on recorded logs of a real Kafka cluster and print the report
	@$(BIN)/rebalance demo

.PHONY: demo-live
demo-live: $(SPARK) $(KAFKA_JARS) ## start a real Kafka with failing consumers and report their rebalances live (two minutes; ARGS=--keep keeps the dashboard)
	@$(BIN)/rebalance demo-live $(ARGS)

.PHONY: test
test: $(SPARK) $(S3_JARS) $(CLASSES) $(KAFKA_CLASSES) | $(filter debian-packages,$(MAKECMDGOALS)) ## run the tests
	@$(BIN)/pytest -n 6 $(SIDE_BY_SIDE) -m "not long"

.PHONY: test-fast
test-fast: $(VENV) ## run the tests that end at once and need no Java, three minutes
	@$(BIN)/pytest -n 2 $(SIDE_BY_SIDE) -m "not spark and not slow and not long"

.PHONY: test-long
test-long: $(SPARK) $(S3_JARS) $(CLASSES) $(KAFKA_CLASSES) ## before a release: thousands of cases of each property, and what `make test` leaves out
	@HYPOTHESIS_PROFILE=long $(BIN)/pytest -n 2 --dist worksteal -m "long or hypothesis"

.PHONY: lint
lint: $(VENV) ## run ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

.PHONY: format
format: $(VENV) ## format the code
	@$(BIN)/ruff check --fix --exit-zero --quiet .
	@$(BIN)/ruff format .

.PHONY: docs
docs: $(VENV) ## write the generated parts of the pages, the numbers that they name, and the examples of the questions
	@$(BIN)/python -m scripts.docs.pages

.PHONY: screenshots
screenshots: $(VENV) ## take the pictures of the docs from a recording, with the Chromium of this machine
	@$(BIN)/python -m scripts.docs.screenshots

.PHONY: conformance
conformance: $(VENV) ## compare recorded steps and rebalances with Kafka's own account (RECORDINGS="DIR ..." for other recordings)
	@$(BIN)/python -m scripts.truth.traces
	@$(BIN)/python -m scripts.truth.second_opinion $(RECORDINGS)

.PHONY: coverage
coverage: $(VENV) ## require 100 % branch coverage of coordinator_model by its own tests, without the random ones
	@COVERAGE="$(BIN)/coverage" scripts/coverage.sh

.PHONY: record
record: $(VENV) $(KAFKA_JARS) ## record accidents staged on real brokers, and what offsets go through, into tests/data (five recordings, 20 minutes)
	@for release in 3.9.1 4.2.0; do $(BIN)/python -m jobs.common.jars kafka $$release || exit 1; done
	@for release in 3.9.1 4.2.0; do $(BIN)/python -m scripts.truth.record $$release tests/data/staged/kafka-$$release || exit 1; done
	@for release in 4.2.0 4.4.0; do \
	  $(BIN)/python -m scripts.truth.record $$release tests/data/staged/kafka-$$release-consumer --protocol consumer || exit 1; done
	@$(BIN)/python -m pip install --quiet kafka-python==3.0.12
	@$(BIN)/python -m tests.lab.cost_scenes 4.4.0 tests/data/cost-scenes/kafka-4.4.0

.PHONY: mutants
mutants: $(VENV) ## change the specification in one place at a time and check that a test fails (ONLY="sync join" for two modules)
	@nice $(BIN)/python -m scripts.mutants.run $(ONLY)

.PHONY: bench
bench: $(SPARK) $(CLASSES) ## measure lines per second, processor time, memory and disk, beside rivals (ARGS="--quick")
	@$(BIN)/python -m bench.bench $(ARGS)

.PHONY: bench-scale
bench-scale: $(SPARK) $(CLASSES) ## compute the time of a run on 1 to 64 cores from Spark's event log (ARGS="--cores 1,16")
	@$(BIN)/python -m bench.bench_scale $(ARGS)

.PHONY: bench-state
bench-state: $(VENV) ## measure what groups cost to which nothing happens, what age costs, and one group of 10,000 members
	@$(BIN)/python -m bench.bench_state $(ARGS)

.PHONY: debian-packages
debian-packages: ## install the programs that some tests start, if this is Debian and you are root (Chromium, Prometheus, Alertmanager)
	@scripts/build/debian_packages.sh $(DEBIAN_PACKAGES)

.PHONY: bench-dashboard
bench-dashboard: $(VENV) ## measure the dashboard with 2,000 groups and 100,000 rebalances: first content, timeline, frames, memory
	@$(BIN)/python -m bench.bench_dashboard $(ARGS)

.PHONY: archive
archive: $(SPARK) $(CLASSES) $(KAFKA_CLASSES) ## keep the classes of Spark and of a broker as the JVM holds them: later runs start in half the time

.PHONY: package
package: $(VENV) ## build the archives for a Spark cluster in dist/ (docs/cluster.md)
	@$(BIN)/python scripts/build/package.py

.PHONY: chaos
chaos: $(SPARK) $(CLASSES) $(KAFKA_CLASSES) ## kill -9 shippers, broker and pipeline 50 times, then compare the tables (ARGS="--kills 10 --seed 2")
	@$(BIN)/python -m scripts.chaos $(ARGS)

.PHONY: lock
lock: ## rewrite requirements.lock (UPGRADE=1: newest versions)
	@scripts/build/lock.sh

.PHONY: clean
clean: ## remove generated files, except .venv, .jars, .jars-s3, .jars-kafka and .ivy
	@rm -rf .demo .demo-live .bench .work build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage \
	  metastore_db derby.log spark-warehouse
	@find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

$(VENV): requirements.lock pyproject.toml scripts/build/setup_venv.sh
	@scripts/build/setup_venv.sh

$(JARS): jobs/common/places.py conf/ivysettings.xml jobs/common/jars.py $(VENV)
	@$(BIN)/python -m jobs.common.jars

$(S3_JARS): jobs/common/places.py conf/ivysettings.xml jobs/common/jars.py $(VENV) | $(JARS)
	@$(BIN)/python -m jobs.common.jars s3

$(CLASSES): scripts/build/archive_classes.py $(JARS)
	@$(BIN)/python -m scripts.build.archive_classes
	@touch $@

$(KAFKA_CLASSES): scripts/build/archive_classes.py $(KAFKA_JARS)
	@$(BIN)/python -m scripts.build.archive_classes kafka
	@touch $@

$(KAFKA_JARS): jobs/common/places.py conf/ivysettings.xml jobs/common/jars.py $(VENV) | $(JARS)
	@$(BIN)/python -m jobs.common.jars kafka
