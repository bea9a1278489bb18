"""What a command says on stderr."""

import re
from typing import Final

_OF_JARS: Final = re.compile(
    r"waiting for another process that is downloading JARs|downloading .* from Maven Central|\d+ files, \d+ MB so far|\d+ JARs in "
    r"|attempt \d+ of \d+ failed"
)


def lines_of_the_command(err: str) -> list[str]:
    """Its lines, but for those about JARs: the first command of a fresh clone downloads them, and `make test` while these tests run."""
    return [line for line in err.splitlines() if not _OF_JARS.search(line)]
