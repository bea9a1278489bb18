"""Fetch and Metadata in lines of `kafka.request.logger`, as Kafka 3.9 and 4.2 write them about Java consumers.

What stays the same from line to line is made once: `asked` and `told` are pieces, and what changes comes between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Final

from jobs.generate.request_text import metadata_api
from jobs.generate.topics import Topic, leader, replicas

FETCH_MS: Final = 300
"""`fetch.max.wait.ms`. With a large `fetch.min.bytes` each fetch takes so long, whether it finds records or not."""
MIN_BYTES: Final = 65_536
RECORD_BYTES: Final = 71
NOTHING_ASKED: Final = '"topics":[]'
NOTHING_TOLD: Final = '"responses":[]'
ASKS_END: Final = ',"forgottenTopicsData":[],"rackId":""},"response":{"throttleTimeMs":0,"errorCode":0,"sessionId":'
"""Between what is asked and the session of the answer, if no partition is forgotten."""
_SHARED: Final = 4_096  # groups of one topic have the same shares
_ZERO_ID: Final = "A" * 22


def begin(client_id: str, session_id: int) -> str:
    """A fetch from its client id to the number of its session's epoch."""
    return (
        f',"clientId":"{client_id}","requestApiKeyName":"FETCH"}},"request":{{"maxWaitMs":{FETCH_MS},"minBytes":{MIN_BYTES},'
        f'"maxBytes":52428800,"isolationLevel":0,"sessionId":{session_id},"sessionEpoch":'
    )


def forgets(topic_id: str, partitions: Sequence[int]) -> str:
    """As `ASKS_END`, for a session that loses partitions."""
    if not partitions:
        return ASKS_END
    lost = f'{{"topicId":"{topic_id}","partitions":[{",".join(map(str, partitions))}]}}'
    return ASKS_END.replace('"forgottenTopicsData":[]', f'"forgottenTopicsData":[{lost}]')


@lru_cache(_SHARED)
def asked(topic_id: str, partitions: tuple[int, ...]) -> tuple[str, ...]:
    """The topics of a request, in pieces: offsets come between them."""
    after = ',"lastFetchedEpoch":-1,"logStartOffset":-1,"partitionMaxBytes":1048576}'
    return _pieces(
        f'"topics":[{{"topicId":"{topic_id}","partitions":[',
        [f'{{"partition":{partition},"currentLeaderEpoch":0,"fetchOffset":' for partition in partitions],
        after,
    )


@lru_cache(_SHARED)
def told(topic_id: str, partitions: tuple[int, ...]) -> tuple[str, ...]:
    """The answers of a response, in pieces: `news` comes between them."""
    return _pieces(
        f'"responses":[{{"topicId":"{topic_id}","partitions":[',
        [f'{{"partitionIndex":{partition},"errorCode":0,"highWatermark":' for partition in partitions],
        "}",
    )


def _pieces(first: str, heads: list[str], after: str) -> tuple[str, ...]:
    return (first + heads[0], *(f"{after},{head}" for head in heads[1:]), f"{after}]}}]")


def news(end: int, offset: int) -> str:
    """A partition's records from an offset to its end."""
    return (
        f'{end},"lastStableOffset":{end},"logStartOffset":0,"abortedTransactions":null,"preferredReadReplica":-1,'
        f'"recordsSizeInBytes":{(end - offset) * RECORD_BYTES}'
    )


def filled(pieces: Sequence[str], between: Sequence[str]) -> str:
    """Pieces with a text of its own in each place."""
    return "".join(chain.from_iterable(zip_longest(pieces, between, fillvalue="")))


def metadata_bodies(release: str, topic: Topic, cluster_id: str, hosts: Sequence[tuple[str, int]]) -> str:
    """A Metadata request for a topic and its answer: it tells the topic's id."""
    brokers = len(hosts)
    nodes = ",".join(f'{{"nodeId":{number},"host":"{host}","port":{port},"rack":null}}' for number, (host, port) in enumerate(hosts, 1))
    led = ((partition, replicas(leader(partition, brokers), brokers)) for partition in range(topic.partitions))
    partitions = ",".join(_partition(partition, f"[{','.join(map(str, nodes))}]", nodes[0]) for partition, nodes in led)
    error = ',"errorCode":0' if metadata_api(release).version > 12 else ""
    return (
        f'"request":{{"topics":[{{"topicId":"{_ZERO_ID}","name":"{topic.name}"}}],"allowAutoTopicCreation":true,'
        f'"includeTopicAuthorizedOperations":false}},"response":{{"throttleTimeMs":0,"brokers":[{nodes}],"clusterId":"{cluster_id}",'
        f'"controllerId":1,"topics":[{{"errorCode":0,"name":"{topic.name}","topicId":"{topic.topic_id}","isInternal":false,'
        f'"partitions":[{partitions}],"topicAuthorizedOperations":-2147483648}}]{error}}}'
    )


def _partition(number: int, nodes: str, leads: int) -> str:
    return (
        f'{{"errorCode":0,"partitionIndex":{number},"leaderId":{leads},"leaderEpoch":0,"replicaNodes":{nodes},"isrNodes":{nodes},'
        '"offlineReplicas":[]}'
    )
