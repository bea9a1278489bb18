#!/bin/sh
# Makes .venv with exactly the packages of requirements.lock and the project itself, editable.
# Run by make when the lock file or pyproject.toml is newer than the stamp. PYTHON chooses the interpreter.
set -eu
cd "$(dirname "$0")/../.."

log=.venv/setup.log
start=$(date +%s)

say() { echo "$1"; }

suitable() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; }

# The newest that the lock file is tested with. PATH may hold names that do not start (pyenv's shims): try each.
find_python() {
  for name in ${PYTHON:-python3.13 python3.12 python3.11 python3.10 python3}; do
    if suitable "$name"; then
      echo "$name"
      return
    fi
  done
  return 1
}

run() {
  if ! "$@" >>"$log" 2>&1; then
    tail -n 3 "$log" >&2
    echo "error: '$*' failed; the full log is $log" >&2
    exit 1
  fi
}

if ! suitable .venv/bin/python; then
  python=$(find_python) || {
    echo "error: no usable ${PYTHON:-Python 3.10 to 3.13} found; install Python 3.10 or newer with its venv module (Debian, Ubuntu: python3-venv) or name one: make PYTHON=/path/to/python3" >&2
    exit 1
  }
  say "creating .venv with $("$python" --version) ..."
  "$python" -m venv --clear .venv
fi
: >"$log"
say "installing the locked packages into .venv (about 2 minutes the first time) ..."
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
run .venv/bin/python -m pip install --require-hashes --requirement requirements.lock
# The build tool comes from the lock file too, so nothing is fetched here.
run .venv/bin/python -m pip install --no-deps --no-build-isolation --editable .
say "installed in $(($(date +%s) - start)) s"
touch .venv/installed
