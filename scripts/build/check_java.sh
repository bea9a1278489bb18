#!/bin/sh
# Is there a Java that Spark 4.0 runs on? Silent if so; otherwise one line for the user and exit code 1.
# Looks where Spark looks: JAVA_HOME, else `java` on the PATH.
set -u

if [ -n "${JAVA_HOME:-}" ]; then
  java=$JAVA_HOME/bin/java
  where="JAVA_HOME=$JAVA_HOME"
else
  java=java
  where="PATH"
fi

no() {
  echo "$1; install a Java 17 or 21 runtime (Debian, Ubuntu: openjdk-17-jre-headless, macOS: brew install openjdk@17) or point JAVA_HOME at one" >&2
  exit 1
}

command -v "$java" >/dev/null 2>&1 || no "no Java found (looked in $where)"
# macOS has a java that only says where to get one: it fails, and names no version.
said=$("$java" -version 2>&1) || no "the java in $where does not start"
# openjdk version "17.0.15" 2025-04-15; Java 8 says 1.8.0_392. A line of JAVA_TOOL_OPTIONS may come first.
version=$(printf '%s\n' "$said" | sed -n 's/^[^"]* version "\([^"]*\)".*/\1/p' | head -n 1)
major=${version#1.}
major=${major%%[!0-9]*}
case $major in
  17 | 21) ;;
  "") no "the java in $where does not tell its version" ;;
  *) no "found Java $version (in $where), which Spark 4.0 is not tested with" ;;
esac
