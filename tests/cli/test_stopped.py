"""Commands that a signal ends."""

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from jobs.common import exit_codes
from jobs.common.interrupts import removing_on_sigterm
from tests.cli.saying import lines_of_the_command

pytestmark = pytest.mark.slow


def test_a_signal_that_ends_the_jvm_first_is_told_as_what_it_is(tmp_path):
    """Whoever ends a group of processes ends both, and the JVM is often gone first."""
    log = tmp_path / "server.log"
    log.write_text(
        "[2026-11-21 06:16:04,117] INFO [GroupCoordinator 1]: Stabilized group g generation 8 (__consumer_offsets-1) with 2 members\n" * 4
    )
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n[ $1 = -version ] && echo 'openjdk version \"17.0.15\"' >&2 && exit\nkill -TERM $COMMAND\nexit 143\n")
    java.chmod(0o755)
    code = "import sys; from jobs.pipeline import at_once; from jobs.cli import main; at_once.MOST_LINES = 3; sys.exit(main(sys.argv[1:]))"
    command = ["sh", "-c", 'COMMAND=$$ exec "$0" -c "$@"', sys.executable, code, "explain", str(log)]
    ended = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"JAVA_HOME": str(java.parents[1])}, check=False)
    assert ended.returncode == exit_codes.ENDED_BY_SIGNAL + signal.SIGTERM
    assert "rebalance: stopped before the end of the input" in lines_of_the_command(ended.stderr)


def test_sigterm_removes_what_the_command_made_for_itself(tmp_path):
    with pytest.raises(SystemExit) as ended, removing_on_sigterm(), tempfile.TemporaryDirectory(dir=tmp_path):
        os.kill(os.getpid(), signal.SIGTERM)
    assert (ended.value.code, list(tmp_path.glob("tmp*"))) == (128 + signal.SIGTERM, [])
