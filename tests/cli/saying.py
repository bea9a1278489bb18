"""What a command says on stderr."""

from __future__ import annotations


def lines_of_the_command(err: str) -> list[str]:
    """Its lines, but for the one that says that it waits: `make test` downloads JARs while these tests run."""
    return [line for line in err.splitlines() if "another process that is downloading JARs" not in line]
