"""The offsets that requests commit and fetch, as JSON and as the text of older brokers."""

from __future__ import annotations

import gzip
import re
import time
from datetime import datetime, timezone
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import events as e
from jobs.parsing import batch
from jobs.parsing.request_log import row
from tests.parsing.old_brokers import FOLDER, REQUESTS, WITH_ANSWERS
from tests.parsing.reading import read_lines
from tests.parsing.test_requests import MEMBER, line


def test_a_commit_is_accepted_if_the_answer_says_so_of_its_partition():
    """A broker answers in an order of its own: refused topics before or after the others, more than four partitions by their hashes."""
    asked = [("a", 0, 5), ("a", 1, 6), ("b", 0, 7), ("b", 3, 8)]
    answered = [("b", 3, 0), ("b", 0, 3), ("a", 1, 0), ("a", 0, 0)]
    topics = [{"name": name, "partitions": [{"partitionIndex": n, "committedOffset": offset}]} for name, n, offset in asked]
    told = [{"name": name, "partitions": [{"partitionIndex": n, "errorCode": error}]} for name, n, error in answered]
    found = row(line(e.OFFSET_COMMIT, 8, {**MEMBER, "topics": topics}, {"topics": told}), 0)
    assert (found["committed"], found["error_code"], found["member_count"]) == ("a-0=5,a-1=6,b-3=8", 3, 4)


class Part(NamedTuple):
    topic: str
    number: int
    offset: int
    metadata: str = ""
    error: int = 0


class Form(NamedTuple):
    """The names of fields in a release, as its classes and messages have them."""

    name: str
    list_of_answer: str
    partitions_of_answer: str
    index: str
    before: str
    """Between number and metadata of a partition."""
    metadata: str
    tags: str
    request: str
    answer: str


OLD, NEW = ("topic", "responses", "partition_responses", "partition"), ("name", "topics", "partitions", "partition_index")
MEMBERS, TAGS, THROTTLED = "group_id={},generation_id=1,member_id=m", ",_tagged_fields={}", "throttle_time_ms=0,"
FORMS = {  # of commits: all versions that print another text
    "1.0 v0": Form(*OLD, "offset={}", "metadata", "", "group_id={}", ""),
    "1.0 v1": Form(*OLD, "offset={},timestamp=-1", "metadata", "", MEMBERS, ""),
    "2.0 v3": Form(*OLD, "offset={}", "metadata", "", f"{MEMBERS},retention_time=-1", THROTTLED),
    "2.1 v6": Form(*OLD, "offset={},leader_epoch=-1", "metadata", "", MEMBERS, THROTTLED),
    "2.3 v1": Form(*NEW, "committed_offset={},commit_timestamp=-1", "committed_metadata", "", MEMBERS, ""),
    "2.7 v8": Form(
        *NEW, "committed_offset={},committed_leader_epoch=4", "committed_metadata", TAGS, f"{MEMBERS},group_instance_id=null", THROTTLED
    ),
    "transaction 2.0 v0": Form(
        "topic", "topics", "partitions", "partition", "offset={}", "metadata", "",
        "transactional_id=t,group_id={},producer_id=7,producer_epoch=0", THROTTLED,
    ),
    "transaction 2.7 v3": Form(
        *NEW, "committed_offset={},committed_leader_epoch=4", "committed_metadata", TAGS,
        "transactional_id=t,group_id={},producer_id=7,producer_epoch=0,generation_id=1,member_id=m,group_instance_id=null", THROTTLED,
    ),
}  # fmt: skip


def printed(api, version, request, response, client="c"):
    return (
        f"[2026-11-22 22:57:00,306] DEBUG Completed request:RequestHeader(apiKey={api}, apiVersion={version}, clientId={client}, "
        f"correlationId=11) -- {request},response:{response} from connection 10.0.0.1:9092-10.0.0.7:51234-3;totalTime:0.5,"
        "requestQueueTime:0.1,localTime:0.2,remoteTime:0.0,throttleTime:0,responseQueueTime:0.1,sendTime:0.1,securityProtocol:PLAINTEXT,"
        "principal:User:ANONYMOUS,listener:PLAINTEXT (kafka.request.logger)"
    )


def topics(form, partitions_of, parts, struct):
    """Topics as a broker prints them. `struct`: of a partition, without its braces."""
    lists = (
        f"{{{form.name}={name},{partitions_of}=[{','.join(struct(part) for part in group)}]{form.tags}}}"
        for name, group in groupby(parts, itemgetter(0))
    )
    return f"[{','.join(lists)}]"


def commit(release, *parts, answered=None, group="g"):
    """A commit and its answer, in which partitions are in another order."""
    form, version = FORMS[release], int(release[-1])

    def struct(part):
        return f"{{{form.index}={part.number},{form.before.format(part.offset)},{form.metadata}={part.metadata}{form.tags}}}"

    def answer(part):
        return f"{{{form.index}={part.number},error_code={part.error}{form.tags}}}"

    told = sorted(parts, key=itemgetter(0, 1), reverse=True) if answered is None else answered
    asked = f"{{{form.request.format(group)},topics={topics(form, 'partitions', parts, struct)}{form.tags}}}"
    said = f"{{{form.answer}{form.list_of_answer}={topics(form, form.partitions_of_answer, told, answer)}{form.tags}}}"
    return printed(e.TXN_OFFSET_COMMIT if "transaction" in release else e.OFFSET_COMMIT, version, asked, said)


def fetch(*parts, new=False, top=True, asked=None):
    """An OffsetFetch: v7 of Kafka 2.7, or v3 or v1 of 1.0."""
    form = FORMS["2.7 v8" if new else "2.0 v3"]
    between = form.before if new else "offset={}"

    def struct(part):
        return f"{{{form.index}={part.number},{between.format(part.offset)},metadata={part.metadata},error_code={part.error}{form.tags}}}"

    def request(part):
        return str(part.number) if new else f"{{partition={part.number}}}"

    named = topics(form, "partition_indexes" if new else "partitions", asked or sorted(parts, key=itemgetter(0, 1)), request)
    told = topics(form, form.partitions_of_answer, parts, struct)
    return printed(
        e.OFFSET_FETCH,
        7 if new else 3 if top else 1,
        f"{{group_id=g,topics={named}{',require_stable=true' if new else ''}{form.tags}}}",
        f"{{{'throttle_time_ms=0,' if top else ''}{form.list_of_answer}={told}{',error_code=0' if top else ''}{form.tags}}}",
    )


TEXTS = {
    **{f"commit {release}": lambda *parts, release=release: commit(release, *parts) for release in FORMS},
    "fetch 1.0 v1": lambda *parts: fetch(*parts, top=False),
    "fetch 1.0 v3": fetch,
    "fetch 2.7 v7": lambda *parts: fetch(*parts, new=True),
}
PARTS = [
    Part("orders", 3, 9_007_199_254_740_993, "null"), Part("orders", 0, 0, 'a "quoted" {x=1}, \\ [y]', 3), Part("orders.by-hour_2", 3, -1),
    Part("a", 0, 5, "}]}]"), Part("a", 12, 6, ",committed_metadata=,metadata=,offset=4"),
]  # fmt: skip
ACCEPTED = "orders-3=9007199254740993,orders.by-hour_2-3=-1,a-0=5,a-12=6"


def committed(text):
    found = row(text, 0)
    assert found["verdict"] == "event", found
    return found["committed"]


@pytest.mark.parametrize("of", TEXTS.values(), ids=TEXTS)
def test_a_printed_request_tells_the_offsets_of_its_accepted_partitions(of):
    assert committed(of(*PARTS)) == ACCEPTED
    assert committed(of(Part("orders", 0, 5, error=3))) is None
    assert committed(of()) is None


def offsets(release):
    """The offsets of all lines of a recording, as read and as found by simple means: its metadata is empty."""
    for text in gzip.decompress((FOLDER / f"kafka-{release}" / f"{REQUESTS}.gz").read_bytes()).decode().splitlines():
        if "(apiKey=OFFSET_" in text:
            told = dict(re.findall(r"\{partition(?:_index)?=(\d+),(?:committed_)?offset=(-?\d+),", text))
            refused = re.search(r"error_code=[1-9]", text)
            yield row(text, 0)["committed"], None if refused else ",".join(f"orders-{n}={offset}" for n, offset in told.items())


@pytest.mark.parametrize("release", WITH_ANSWERS)
def test_the_offsets_that_old_brokers_recorded(release):
    found = list(offsets(release))
    assert len(found) > 50
    assert [read for read, _ in found] == [told for _, told in found]


def test_printed_offsets_are_offsets_of_events():
    at = datetime(2026, 11, 22, tzinfo=timezone.utc)
    (event,) = batch.events(read_lines([("c", "b", "line", "f", 1, at, commit("2.7 v8", *PARTS), None, 1, None, None)]), 0).to_pylist()
    assert [(one["partition"], one["offset"]) for one in event["offsets"]][1:] == [("orders.by-hour_2-3", -1), ("a-0", 5), ("a-12", 6)]


MORE = "x},{partition=1,offset=99,metadata="  # another partition
TOPIC = "x}]},{topic=other,partitions=[{partition=0,offset=99,metadata="
SPOOFS = {
    "a partition that is not there": commit("2.0 v3", Part("orders", 0, 5, MORE)),
    "a topic that is not there": commit("2.0 v3", Part("orders", 0, 5, TOPIC)),
    "a partition twice": commit("2.0 v3", Part("orders", 0, 5, MORE), Part("orders", 1, 6)),
    "a partition before a strange topic": commit("2.0 v3", Part("orders", 0, 5, TOPIC), Part("☃", 0, 6)),
    "a list in a group id": commit(
        "1.0 v0", Part("orders", 0, 5), group="g,topics=[{topic=orders,partitions=[{partition=0,offset=99,metadata="
    ),
    "a whole list in a group id": commit(
        "1.0 v0", Part("orders", 0, 5), group="g,topics=[{topic=orders,partitions=[{partition=0,offset=99,metadata=}]}]}"
    ),
    "an answer in the name of a topic": commit(
        "2.0 v3",
        Part("c", 0, 5, "x}]},{topic=a,partitions=[{partition=0,offset=99,metadata="),
        Part("a,partition_responses=[{partition=0,error_code=0}]},{topic=b", 0, 6, error=3),
        answered=[Part("c", 0, 5), Part("a,partition_responses=[{partition=0,error_code=0}]},{topic=b", 0, 6, error=3)],
    ),
    "fewer answers": commit("2.0 v3", Part("orders", 0, 5), Part("orders", 1, 6), answered=[Part("orders", 0, 5)]),
    "a number with a zero before it": commit("2.0 v3", Part("orders", 0, "007")),
    "a number of 65 bits": commit("2.0 v3", Part("orders", 0, 1 << 64)),
    "a partition in an answer": fetch(
        Part("orders", 0, 5, "x,error_code=0},{partition=1,offset=99,metadata="), asked=[Part("orders", 0, 5)]
    ),
    "a partition that was asked for": fetch(Part("orders", 0, 5, "x,error_code=0},{partition=1,offset=99,metadata="), Part("orders", 1, 6)),
    "a partition in the place of a strange topic": fetch(
        Part("c", 0, 5, "x,error_code=0},{partition=1,offset=99,metadata="), Part("☃", 1, 6)
    ),
    "a request in the name of a topic": fetch(
        Part("c", 0, 5, "x,error_code=0}]},{topic=a,partition_responses=[{partition=0,offset=99,metadata="),
        Part("a,partitions=[{partition=0}]},{topic=b", 0, -1, error=3),
        asked=[Part("c", 0, 5), Part("a,partitions=[{partition=0}]},{topic=b", 0, -1)],
    ),
}


@pytest.mark.parametrize("text", SPOOFS.values(), ids=SPOOFS)
def test_no_text_of_a_client_is_an_offset(text):
    assert committed(text) is None


def test_no_offsets_and_no_other_change_if_they_are_in_doubt():
    plain, doubtful = row(commit("2.7 v8", Part("orders", 0, 5)), 0), row(SPOOFS["a partition that is not there"], 0)
    assert (plain.pop("committed"), doubtful.pop("committed")) == ("orders-0=5", None)
    assert {**plain, "api_version": 3} == doubtful


NEXT = {
    "1.0": "},{partition=1,offset=9,metadata=",
    "2.7": "},{partition_index=1,committed_offset=9,committed_leader_epoch=4,committed_metadata=",
    "2.7, fetched": "},{partition_index=1,committed_offset=9,committed_leader_epoch=4,metadata=",
}
PIECES = [
    *'x}],{="\\0', "}]", "}]}", ",metadata=", "topic=a", "name=a", "error_code=0", ",error_code=0}", TAGS, "topics=[", "responses=[",
    "partitions=[0", "}]},{topic=b,partitions=[", "{partition=0,offset=9,metadata=", "{partition=0,error_code=0}",
    *(before + text for text in NEXT.values() for before in ("", ",error_code=0", TAGS, f",error_code=0{TAGS}")),
]  # fmt: skip


@given(st.data())
def test_metadata_never_changes_an_offset(data):
    """Whatever it is: each offset is true, or none is told."""
    metadata = st.lists(st.sampled_from(PIECES), max_size=5).map("".join) | st.text("x{}[],=0", max_size=9)
    keys = data.draw(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), min_size=1, max_size=4, unique=True))
    parts = [Part(*key, n, data.draw(metadata), data.draw(st.sampled_from([0, 0, 3]))) for n, key in enumerate(sorted(keys))]
    text = data.draw(st.sampled_from(list(TEXTS.values())))(*parts)
    told = ",".join(f"{part.topic}-{part.number}={part.offset}" for part in parts if not part.error) or None
    assert row(text, 0).get("committed") in {told, None}


@pytest.mark.parametrize("piece", [*PIECES, "},{topic=" + "a" * 249, "},{partition=0,offset=1,timestamp=" + "1" * 999])
def test_a_long_text_takes_no_longer_than_its_length(piece):
    began = time.process_time()
    for of in TEXTS.values():
        row(of(Part("orders", 0, 5, piece * (40_000 // len(piece)))), 0)
    assert time.process_time() - began < 2
