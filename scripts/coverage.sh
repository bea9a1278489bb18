#!/bin/sh
# Branch coverage of coordinator_model: every branch has to be taken by the tests of its own part, without those on random
# scripts: what they reach they may not reach next time.
set -eu
cd "$(dirname "$0")/.."

coverage=${COVERAGE:-.venv/bin/coverage}
mkdir -p .work

measure() {
  export COVERAGE_FILE=".work/coverage-$1"
  shift
  "$coverage" run --source coordinator_model -m pytest -q --no-header -p no:cacheprovider -m "not hypothesis and not spark and not slow" "$@"
}

complete() {
  "$coverage" report --show-missing --skip-covered --fail-under 100 "$@"
}

echo "The specification, by tests/specification tests/clients:"
measure model tests/specification tests/clients
complete --include "coordinator_model/*.py,coordinator_model/specification/*,coordinator_model/clients/*"

echo "The tracker and its diagnoses, by their stories:"
measure tracker tests/tracker tests/diagnosis
complete --include "coordinator_model/tracker/*,coordinator_model/diagnosis/*,coordinator_model/view/*"

echo "The whole of coordinator_model, by both:"
COVERAGE_FILE=.work/coverage-model "$coverage" combine -q --keep --data-file .work/coverage .work/coverage-model .work/coverage-tracker
complete --data-file .work/coverage
