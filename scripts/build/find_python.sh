#!/bin/sh
# Prints the Python to make .venv with: the newest one that the lock file is tested with, or that of PYTHON.
# PATH may hold names that do not start (pyenv's shims), so each name is tried.
for name in ${PYTHON:-python3.13 python3.12 python3.11 python3.10 python3}; do
  if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
    echo "$name"
    exit
  fi
done
echo "error: no usable ${PYTHON:-Python 3.10 to 3.13} found; install Python 3.10 or newer with its venv module (Debian, Ubuntu: python3-venv) or name one: make PYTHON=/path/to/python3" >&2
exit 1
