#!/bin/sh
# Branch coverage. The specification (coordinator_model without tracker/ and diagnosis/) has to be covered completely by its own tests,
# without those on random scripts: what they reach they may not reach next time. The tracker is only measured.
set -eu
cd "$(dirname "$0")/.."

coverage=${COVERAGE:-.venv/bin/coverage}
mkdir -p .work

measure() {
  name=$1
  shift
  export COVERAGE_FILE=".work/coverage-$name"
  "$coverage" run -m pytest -q --no-header -p no:cacheprovider "$@"
}

echo "The specification, by tests/model:"
measure model -m "not hypothesis" tests/model
"$coverage" report --include "coordinator_model/*" --omit "coordinator_model/tracker/*,coordinator_model/diagnosis/*" --show-missing --skip-covered --fail-under 100

echo "The tracker, by all tests that need no Java:"
measure tracker -m "not spark and not slow"
"$coverage" report --include "coordinator_model/tracker/*,coordinator_model/diagnosis/*" --show-missing
