"""Builds the expressions of a transformation once, and applies them to the DataFrame of every micro-batch.

Each operation on a Column is a call from Python into the JVM. Parsing has 11,000 of them, which take a second a micro-batch; the forty
operations on DataFrames that use them take a third of a second. A Column is bound to no DataFrame, so it can be used again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pyspark.sql import DataFrame


class PreparedTransform:
    """Applies `transform`, which may only call methods and read columns of a DataFrame.

    Serves one Spark application, and DataFrames of one schema.
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
    """A DataFrame and the call that made it. Only the call is kept."""

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
        """Drops the DataFrames of all steps; returns the one of this step."""
        frame, self.frame = self.frame, None
        for step in (self._source, *self._arguments):
            if isinstance(step, _Step) and step.frame is not None:
                step.forget()
        assert frame is not None
        return frame

    def repeated(self, rows: DataFrame, made: dict[int, DataFrame]) -> DataFrame:
        """Makes the same calls on other rows."""
        if self._source is None:
            return rows
        if id(self) not in made:
            source = self._source.repeated(rows, made)
            arguments = (step.repeated(rows, made) if isinstance(step, _Step) else step for step in self._arguments)
            made[id(self)] = getattr(source, self._method)(*arguments, **self._options)
        return made[id(self)]


def _frame_of(value: Any) -> Any:
    return value.frame if isinstance(value, _Step) else value
