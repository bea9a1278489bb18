#!/usr/bin/env bash
# Installs packages of Debian that some tests use, if they are missing and can be installed: on Debian or Ubuntu, as root. Never fails: tests
# that need a missing program say so and are left out.
set -euo pipefail

missing=()
for package in "$@"; do
  dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "not installed: ${missing[*]} (needs apt-get, as root): the tests that use them are left out"
  exit 0
fi

echo "installing ${missing[*]}, which some tests start ..."
# The packages of servers would start them. Nobody asked for that: the tests start their own.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
install=(apt-get install -qq -y --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}")
if ! { "${install[@]}" || { apt-get update -qq && "${install[@]}"; }; } >/dev/null 2>&1; then
  echo "could not install ${missing[*]}: the tests that use them are left out"
fi
