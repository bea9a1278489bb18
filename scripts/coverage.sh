#!/bin/sh
# Branch coverage of coordinator_model. The tests of each part have to take all of its branches. Random tests do not count, because
# the next run may reach other branches.
set -eu
cd "$(dirname "$0")/.."

coverage=${COVERAGE:-.venv/bin/coverage}
mkdir -p .work

measure() {
  export COVERAGE_FILE=".work/coverage-$1"
  shift
  "$coverage" run --source coordinator_model -m pytest -q --no-header -p no:cacheprovider -m "not hypothesis and not spark" \
    --deselect tests/tracker/simulated/test_simulated.py::test_the_tables_are_what_the_specification_did \
    --deselect tests/tracker/simulated/test_harmed.py "$@"
}

complete() {
  "$coverage" report --show-missing --skip-covered --fail-under 100 "$@"
}

echo "The specification and its clients, by tests/specification tests/clients:"
measure model tests/specification tests/clients
complete --include "coordinator_model/specification/*,coordinator_model/clients/*"

echo "The tracker, its view and its diagnoses, by tests/tracker tests/diagnosis:"
measure tracker tests/tracker tests/diagnosis
complete --include "coordinator_model/tracker/*,coordinator_model/diagnosis/*,coordinator_model/view/*"

echo "The whole of coordinator_model, by both:"
COVERAGE_FILE=.work/coverage-model "$coverage" combine -q --keep --data-file .work/coverage .work/coverage-model .work/coverage-tracker
complete --data-file .work/coverage
