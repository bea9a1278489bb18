"""A transformation of DataFrames whose expressions are built once, and applied to every micro-batch.

Each operation on a Column is a call from Python into the JVM. Parsing has 15,000 of them, two seconds a micro-batch; the forty
operations on DataFrames that they go into take a third of one. Columns know no DataFrame, so they can be used again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pyspark.sql import DataFrame


class Prepared:
    """Applies `transform`, which must do nothing with a DataFrame but call its methods and ask for its columns.

    Good for one Spark application, and for DataFrames of one schema.
    """

    def __init__(self, transform: Callable[[DataFrame], DataFrame]) -> None:
        self._transform = transform
        self._result: _Step | None = None

    def __call__(self, rows: DataFrame) -> DataFrame:
        """The transformed rows."""
        if self._result is None:
            result = cast("_Step", self._transform(cast("DataFrame", _Step(rows))))
            made = result.forget()
            self._result = result
            return made
        return self._result.repeated(rows, {})


class _Step:
    """A DataFrame and the call that made it; only the call is kept."""

    def __init__(
        self,
        frame: DataFrame,
        source: _Step | None = None,
        method: str = "",
        arguments: Sequence[Any] = (),
        options: Mapping[str, Any] = {},
    ) -> None:
        self.frame: DataFrame | None = frame
        self._source = source
        self._method = method
        self._arguments = arguments
        self._options = options

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.frame, name)
        if not callable(value):
            return value

        def call(*arguments: Any, **options: Any) -> _Step:
            return _Step(value(*map(_frame_of, arguments), **options), self, name, arguments, options)

        return call

    def forget(self) -> DataFrame:
        """Lets go of all DataFrames on the way; returns this one."""
        frame, self.frame = self.frame, None
        for step in (self._source, *self._arguments):
            if isinstance(step, _Step) and step.frame is not None:
                step.forget()
        assert frame is not None
        return frame

    def repeated(self, rows: DataFrame, made: dict[int, DataFrame]) -> DataFrame:
        """The same calls, beginning with other rows."""
        if self._source is None:
            return rows
        if id(self) not in made:
            source = self._source.repeated(rows, made)
            arguments = (step.repeated(rows, made) if isinstance(step, _Step) else step for step in self._arguments)
            made[id(self)] = getattr(source, self._method)(*arguments, **self._options)
        return made[id(self)]


def _frame_of(value: Any) -> Any:
    return value.frame if isinstance(value, _Step) else value
