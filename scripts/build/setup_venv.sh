#!/bin/sh
# Makes .venv with exactly the packages of requirements.lock and the project itself, editable.
# make runs it when the lock file or pyproject.toml is newer than the stamp. PYTHON chooses the interpreter.
set -eu
cd "$(dirname "$0")/../.."

log=.venv/setup.log
start=$(date +%s)

run() {
  if ! "$@" >>"$log" 2>&1; then
    tail -n 3 "$log" >&2
    echo "error: '$*' failed; the full log is $log" >&2
    exit 1
  fi
}

if ! PYTHON=.venv/bin/python scripts/build/find_python.sh >/dev/null 2>&1; then
  python=$(scripts/build/find_python.sh)
  echo "creating .venv with $("$python" --version) ..."
  "$python" -m venv --clear .venv
fi
: >"$log"
echo "installing the locked packages into .venv (about 2 minutes the first time) ..."
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 DIST_EXTRA_CONFIG="$PWD/scripts/build/setup_venv.cfg"
# --no-compile: Python compiles what it imports, which is a small part of what is installed.
run .venv/bin/python -m pip install --no-compile --require-hashes --requirement requirements.lock
# The build tool comes from the lock file too, so nothing is fetched here.
run .venv/bin/python -m pip install --no-deps --no-build-isolation --editable .
echo "installed in $(($(date +%s) - start)) s"
touch .venv/installed
