"""Archives of the tests' data, unpacked by every Python that the project supports."""

import tarfile
from pathlib import Path
from typing import Any, Final

# Since 3.12 Python asks for a filter; 3.10 and 3.11 know none in their first releases, which Debian 12 has.
_SAFELY: Final[dict[str, Any]] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def unpack(archive: Path, folder: Path) -> None:
    """Unpacks a tar archive into a folder."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, **_SAFELY)
