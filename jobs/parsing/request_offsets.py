"""Committed offsets in requests that were printed as text (request_text.py), as the JSON of Kafka 2.8 has them.

    {…,topics=[{topic=orders,partitions=[{partition=0,offset=5,metadata=…},…]},…]}
    {…,topics=[{name=orders,partitions=[{partition_index=0,committed_offset=5,committed_leader_epoch=-1,committed_metadata=…},…]},…]}

OffsetCommit is printed so until 2.2 and since 2.3, TxnOffsetCommit and the answer to an OffsetFetch until 2.3 and since 2.4. That answer
has an error in each partition, too.
Sources: kafka `OffsetCommitRequest`, `TxnOffsetCommitRequest` and `OffsetFetchResponse` at 1.0.2, 2.1.1 and 2.3.1, and
`common/message/*.json` at 2.3.1, 2.4.1 and 2.7.2.

Metadata is any text of a client, and may look like more partitions. So each place is read where a partition may begin, and the offsets are
believed if these are the partitions that the other half of the exchange names, which has no metadata: the answer to a commit, the request
of an OffsetFetch. No text can hide a partition, so none can stand for one. Brokers do not keep the order of partitions.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from coordinator_model import events as e
from jobs.common.expressions import expression
from jobs.parsing.request_json import PartitionOffset, TopicOffsets

_TAGS: Final = r"(?:,_tagged_fields=\{\})?"
_TOPIC: Final = r"\{(?:topic|name)="
_NAME: Final = r"[\w.-]{1,249}"  # all that Kafka allows
_PARTITIONS: Final = r",partition\w{0,10}=\["  # partitions, partition_responses, partition_indexes
_PARTITION: Final = r"\{partition(?:_index)?="
_NUMBER: Final = r"(?:[1-9]\d{0,17}|0)"  # JSON has no leading zeros, and not all larger numbers are integers of 64 bits
_UNREAD: Final = r"(?:,(?:committed_)?leader_epoch=-?\d{1,10})?(?:,(?:commit_)?timestamp=-?\d{1,19})?"


class _Exchange(NamedTuple):
    """A request and its answer: `told` is the half with the offsets, `named` the one that only names partitions."""

    begin: re.Pattern[str]
    """All from the metadata of one partition to that of the next: the error of the one, the topic, number and offset of the other."""
    end: re.Pattern[str]
    """All from the last metadata, with the error of that partition."""
    named: re.Pattern[str]
    foreign: re.Pattern[str]
    """What only `named` has. If it is in `told`, the name of a topic looks like more of them."""


def _exchange(error: str, named: str, foreign: str) -> _Exchange:
    """`error`: behind the metadata of a partition. `named`: a partition of the other half."""
    after = rf"{error}{_TAGS}\}}"
    topic = rf"{_TOPIC}{_NAME}{_PARTITIONS}{named}(?:,{named})*\]{_TAGS}\}}"
    begin = (
        rf"(?:\A\[|{after}(?:\]{_TAGS}\}})?,)(?:{_TOPIC}({_NAME}){_PARTITIONS})?"
        rf"{_PARTITION}({_NUMBER}),(?:committed_)?offset=(-?{_NUMBER}){_UNREAD},(?:committed_)?metadata="
    )
    end = rf"{after}\]{_TAGS}\}}\](?:,error_code=-?\d{{1,5}})?{_TAGS}\}}\Z"
    topics = rf"\[{topic}(?:,{topic})*\](?:,require_stable=(?:true|false))?{_TAGS}\}}"
    return _Exchange(*(expression(pattern, re.ASCII) for pattern in (begin, end, topics, foreign)))


_COMMIT: Final = _exchange("()", rf"{_PARTITION}\d{{1,18}},error_code=-?\d{{1,5}}{_TAGS}\}}", "error_code=")
_FETCH: Final = _exchange(
    r",error_code=(-?[1-9]\d{0,4}|0)", r"(?:\{partition=\d{1,18}\}|\d{1,18})", r"\{partition=\d+\}|partition_indexes="
)
EXCHANGES: Final = {e.OFFSET_COMMIT: _COMMIT, e.TXN_OFFSET_COMMIT: _COMMIT, e.OFFSET_FETCH: _FETCH}
_NAMED: Final = expression(rf"{_TOPIC}({_NAME})|(?:{_PARTITION}|[\[,](?=\d))(\d+)", re.ASCII)
_LISTS: Final = expression(r"[{,](?:topics|responses)=")


def topics(api: str, request: str, response: str) -> list[TopicOffsets | None]:
    """The topics that have offsets: those of a commit, or of the answer to an OffsetFetch. None of them if they are in doubt."""
    exchange = EXCHANGES[api]
    told, named = (_list(half) for half in ((response, request) if api == e.OFFSET_FETCH else (request, response)))
    end = exchange.end.search(told)
    if end is None or exchange.foreign.search(told) or not exchange.named.fullmatch(named):
        return []
    found = exchange.begin.findall(told)
    errors = [*(error for error, *_ in found), end[1]][1:]
    read, partitions = list[TopicOffsets | None](), []
    for (_, begun, number, offset), error in zip(found, errors, strict=True):
        if begun or not read:
            own: list[PartitionOffset | None] = []
            read.append(TopicOffsets(begun, partitions=own))
            topic = begun
        own.append(PartitionOffset(int(number), int(offset), int(error) if error else None))
        partitions.append((topic, number))
    return read if sorted(partitions) == sorted(_partitions(named)) else []


def _list(half: str) -> str:
    """All from the list of topics. Nothing if an id may hold another list."""
    _, *lists = _LISTS.split(half, maxsplit=2)
    return lists[0] if len(lists) == 1 else ""


def _partitions(named: str) -> list[tuple[str, str]]:
    """Topics and numbers of partitions."""
    found, topic = [], ""
    for begun, number in _NAMED.findall(named):
        topic = begun or topic
        if number:
            found.append((topic, number))
    return found
