"""Regular expressions that are compiled when they are first used: a short command uses a third of them, and all take 60 ms."""

from __future__ import annotations

import re
from typing import Any, AnyStr, Final, Generic, cast

_OPERATIONS: Final = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")


class _Uncompiled(Generic[AnyStr]):
    """Is used like what `re.compile` makes. Then the operations of that are its own."""

    def __init__(self, text: AnyStr, flags: int) -> None:
        self._given: tuple[AnyStr, int] = text, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._given)
        vars(self).update({operation: getattr(compiled, operation) for operation in _OPERATIONS})
        return getattr(compiled, name)


def expression(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` makes, later."""
    return cast("re.Pattern[AnyStr]", _Uncompiled(text, flags))
