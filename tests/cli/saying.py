"""What a command says on stderr."""

import re
from typing import Final

_OF_JARS: Final = re.compile(
    r"waiting for another process that is downloading JARs|downloading .* from Maven Central|\d+ files, \d+ MB so far|\d+ JARs in "
    r"|attempt \d+ of \d+ failed"
)
_OF_PROGRESS: Final = re.compile(r" *\d+ s  ")


def lines_of_the_command(err: str) -> list[str]:
    """Its lines, but for those about JARs, and how far it is.

    The first command of a fresh clone downloads JARs, and `make test` while these tests run; who waits for long is told what for.
    """
    return [line for line in err.splitlines() if not (_OF_JARS.search(line) or _OF_PROGRESS.match(line))]
