"""The rows of `group_events` that a micro-batch is about, read by the task itself.

Spark decides which files a micro-batch has and which task reads what of them, and no more: it takes no column. In its own way a row costs
20 to 40 µs, since its lists are taken apart value by value and put together again. The task takes them from the file as Arrow has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from schemas import group_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SCHEMA: Final = to_arrow_schema(group_events.SCHEMA)
_ROWS: Final = 10_000  # at a time


class Split(NamedTuple):
    """What a task reads of a file: the row groups whose middle lies in a range of its bytes."""

    uri: str
    start: int
    length: int


def splits_of(rows: DataFrame) -> DataFrame:
    """The Split of each row of a table."""
    return rows.select(f.input_file_name(), f.input_file_block_start(), f.input_file_block_length())


def rows_in(batches: Iterable[pa.RecordBatch], names: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """The rows whose `splits_of` these are, with these columns of `group_events`. In the order of each file, if not in that of Spark.

    RuntimeError: a file has more or fewer rows there than Spark has found in it.
    """
    fields = [_SCHEMA.field(name) for name in names]
    wanted: Counter[Split] = Counter()
    for batch in batches:
        of = pa.Table.from_batches([batch]).group_by(batch.schema.names).aggregate([([], "count_all")])
        for uri, start, length, count in zip(*(column.to_pylist() for column in of.columns), strict=True):
            wanted[Split(uri, start, length)] += count
    for split, count in wanted.items():
        read = 0
        for rows in _read(split, fields):
            read += rows.num_rows
            yield rows
        if read != count:
            raise RuntimeError(f"{split.uri}: {count} rows at {split.start}, and {read} were read")


def rows_of(files: Iterable[Path], names: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """All rows of these files, with these columns of `group_events`."""
    fields = [_SCHEMA.field(name) for name in names]
    for file in files:
        yield from _read(Split(file.absolute().as_uri(), 0, file.stat().st_size), fields)


def _read(split: Split, fields: list[pa.Field]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema(fields)
    with pq.ParquetFile(Path(unquote(urlsplit(split.uri).path))) as file:
        groups = [group for group in range(file.num_row_groups) if split.start <= _middle(file, group) < split.start + split.length]
        for rows in file.iter_batches(_ROWS, groups, schema.names, use_threads=False):
            yield pa.RecordBatch.from_arrays([rows[field.name].cast(field.type) for field in fields], schema=schema)


def _middle(file: pq.ParquetFile, group: int) -> int:
    """The byte that decides whose a row group is (parquet-java, ParquetMetadataConverter.filterFileMetaDataByMidpoint)."""
    columns = [file.metadata.row_group(group).column(index) for index in range(file.metadata.num_columns)]
    first = columns[0]
    start: int = min(first.data_page_offset, first.dictionary_page_offset or first.data_page_offset)
    size: int = sum(column.total_compressed_size for column in columns)
    return start + size // 2
