#!/bin/sh
# Writes requirements.lock: every package of the project and of its tests, pinned, with the hashes of all its files.
# Resolved on Python 3.10, the oldest supported: what still supports that also installs on the newer ones,
# while the reverse does not hold. Versions already locked stay, unless `make lock UPGRADE=1`.
set -eu
cd "$(dirname "$0")/../.."

python=${PYTHON310:-python3.10}
if ! "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 10))' >/dev/null 2>&1; then
  echo "error: the lock file is made with Python 3.10, and $python is not one; name it: make lock PYTHON310=/path/to/python3.10" >&2
  exit 1
fi
tools=.work/lock-venv
if [ ! -x "$tools/bin/pip-compile" ]; then
  echo "creating $tools ..."
  "$python" -m venv --clear "$tools"
  "$tools/bin/python" -m pip install --quiet --disable-pip-version-check pip-tools
fi
echo "resolving (a few minutes: every file is hashed) ..."
# No address of an index or a local folder may reach the file, whatever pip is configured with here.
CUSTOM_COMPILE_COMMAND="make lock" "$tools/bin/pip-compile" --quiet ${UPGRADE:+--upgrade} \
  --extra dev --no-strip-extras --allow-unsafe --generate-hashes \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
  --output-file requirements.lock pyproject.toml
echo "wrote requirements.lock"
