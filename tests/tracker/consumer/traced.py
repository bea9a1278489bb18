"""Traces of Kafka's own coordinator as brokers would tell them: lines of its log, answers to heartbeats, stored records."""

import base64
from functools import cache

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Assignment, Event, Protocol
from coordinator_model.specification.consumer.traces.trace import episodes_of_trace
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.rows import Row
from coordinator_model.view.settings import TrackerSettings
from jobs.sentences.language import Templates
from jobs.sentences.pages import sentences
from scripts.truth.trace_files import read_consumer_lines

START_MS = 1_800_000_000_000
FIELDS = {"member": "member_id", "instance": "instance_id", "new_member": "answer_member_id"}
NUMBERS = {"generation": "generation", "count": "member_count", "rebalance_timeout": "rebalance_timeout_ms"}
CAUSES = {
    "join": "MEMBER_JOINED", "leave": "MEMBER_LEFT", "session_expired": "SESSION_TIMEOUT",
    "rebalance_timeout": "REBALANCE_TIMEOUT", "subscription": "SUBSCRIPTION_CHANGED", "metadata": "METADATA_CHANGED",
    "expression_resolved": "REGEX_RESOLVED",
}  # fmt: skip
LOG, REQUESTS, RECORDS_TOPIC = "coordinator log", "request log", "records"
RECORDS = {
    "GroupMetadata": kinds.EPOCH_STORED,
    "ConsumerGroupPartitionMetadataKey": kinds.TOPICS_STORED,
    "MemberMetadata": kinds.MEMBER_STORED,
    "TargetAssignmentMetadata": kinds.TARGET_STORED,
    "TargetAssignmentMember": kinds.TARGET_MEMBER_STORED,
    "CurrentMemberAssignment": kinds.CURRENT_STORED,
    "RegularExpression": kinds.EXPRESSION_STORED,
}
SENTENCES = Templates(sentences("consumer"))
LIES = {"lab/append_failure_on_expiry", "lab/append_failure_undoes_join"}  # the coordinator logs what it could not store


_READ: dict[str, tuple[dict, list[dict]]] = {}
"""The traces that were asked for."""


def trace(name: str) -> tuple[dict, list[dict]]:
    """A trace that `traces` or `newer_traces` gave, and its episodes."""
    return _READ[name]


def _cases(release: str, one_in: int) -> list[dict]:
    """All that were written for a purpose, and one in so many of the random ones."""
    suffix = "" if release == "4.2.0" else f"-{release}"
    return [*read_consumer_lines(f"cases{suffix}"), *list(read_consumer_lines(f"random-{release}"))[::one_in]]


@cache
def traces(one_in: int) -> dict[str, tuple[dict, list[dict]]]:
    """Traces of 4.2.0 with their measured episodes."""
    episodes = {one["name"]: one["episodes"] for kind in ("cases", "random") for one in read_consumer_lines(f"episodes-{kind}")}
    found = {case["name"]: (case, as_told(case, episodes.get(case["name"], []))) for case in _cases("4.2.0", one_in)}
    _READ.update(found)
    return found


@cache
def newer_traces(one_in: int) -> dict[str, tuple[dict, list[dict]]]:
    """Traces of 4.3.1 and 4.4.0, by release and name. Their episodes are those of the specification, which equals Kafka at each step."""
    cases = [case for release in ("4.3.1", "4.4.0") for case in _cases(release, one_in)]
    found = {f"{case['measured_on']}/{case['name']}": (case, as_told(case, episodes_of_trace(case)["episodes"])) for case in cases}
    _READ.update(found)
    return found


@cache
def all_traces(one_in: int) -> dict[str, tuple[dict, list[dict]]]:
    return traces(one_in) | newer_traces(one_in)


def as_told(case: dict, episodes: list[dict]) -> list[dict]:
    """A member that joins an Empty group with an expression raises no epoch. That its topics are found does, and is laid to its account."""
    first = {}
    for step in case["steps"]:
        lines = [line for line in step.get("expect", {}).get("log", ()) if "Bumped" in line["line"] or "Scanned" in line["line"]]
        members = step.get("expect", {}).get("group_after", {}).get("members", ())
        if len(members) == 1 and len(lines) == 2 and "Scanned" in lines[0]["line"] and step.get("req", {}).get("epoch") == 0:
            first[step["at_ms"]] = members[0]["member"]
    for one in (one for episode in episodes for one in episode["rounds"][:1]):
        if one["cause"] == "expression_resolved" and one["at_ms"] in first:
            one["cause"], one["member"], one["raised_by"] = "join", first[one["at_ms"]], "expression_resolved"
    return episodes


def lines_of(step: dict) -> list[Event]:
    found = []
    for line in [*step["expect"].get("log_advance", ()), *step["expect"].get("log", ())]:
        sentence = line["line"].partition("] ")[2] if line["line"].startswith("[ topic=") else line["line"]
        reading = SENTENCES.read(sentence)
        if reading is not None:
            texts = {column: reading.fields[name] for name, column in FIELDS.items() if name in reading.fields}
            numbers = {column: int(reading.fields[name]) for name, column in NUMBERS.items() if name in reading.fields}
            at_ms, state = START_MS + line["at_ms"], reading.template.fixed.get("state", "")
            event = Event("b", "coordinator", "server.log", 0, at_ms, at_ms, reading.template.kind, step.get("group", "g"))
            found.append(event._replace(reason=sentence, state=state, **texts, **numbers))
    return found


def uuid(label: str, topic_ids: dict[str, list[int]]) -> str:
    """A topic id as logs print it; the label of one that never was."""
    if label not in topic_ids:
        return label
    return base64.urlsafe_b64encode(b"".join(half.to_bytes(8, "big", signed=True) for half in topic_ids[label])).decode().rstrip("=")


def partitions_of(by_label: dict[str, list[int]], topic_ids: dict[str, list[int]]) -> tuple[str, ...]:
    return tuple(f"{uuid(label, topic_ids)}-{number}" for label, numbers in by_label.items() for number in numbers)


def answer_of(step: dict, topic_ids: dict[str, list[int]]) -> Event:
    asked, answer, at_ms = step["req"], step["expect"]["response"], START_MS + step["at_ms"]
    ok, member = answer["error"] == "NONE", asked.get("member") or ""
    assigned, owned = answer["assignment"] if ok else None, asked.get("owned")
    return Event(
        "b", "request", "kafka-request.log", 0, at_ms, at_ms, kinds.CONSUMER_GROUP_HEARTBEAT, step.get("group", "g"),
        connection=f"connection of {member}", client_id=member, member_id=member, instance_id=asked.get("instance") or "",
        generation=asked["epoch"], error_code=0 if ok else int(getattr(Error, answer["error"], 42)),
        answer_member_id=(answer["member"] or "") if ok else "", answer_generation=answer["epoch"] if ok else 0,
        protocols=() if asked.get("topics") is None else (Protocol("uniform", tuple(asked["topics"]), (), ""),),
        assignments=() if assigned is None else (Assignment(member, partitions_of(assigned, topic_ids), ""),),
        owned=None if owned is None else partitions_of(owned, topic_ids), protocol=asked.get("assignor") or "",
        subscribed_regex=asked.get("regex"), api_version=asked.get("api_version", 1),
        rebalance_timeout_ms=asked.get("rebalance_timeout_ms", -1), heartbeat_interval_ms=answer["heartbeat_interval_ms"] if ok else 0,
    )  # fmt: skip


def records_of(step: dict, topic_ids: dict[str, list[int]]) -> list[Event]:
    """What the coordinator wrote to `__consumer_offsets`. Timers that fired before the step wrote when they logged the epoch."""
    expect, found, batch = step["expect"], [], []
    raised_ms = [line["at_ms"] for line in expect.get("log_advance", ()) if "Bumped group epoch" in line["line"]]
    for record in expect.get("records_advance", ()):
        batch.append(record)
        if record["rec"] == "GroupMetadata" and "epoch" in record:
            at_ms = raised_ms.pop(0)
            found += [(at_ms, one) for one in batch]
            batch = []
    found += [(step["at_ms"], record) for record in [*batch, *expect.get("records", ())]]
    lines = (line["line"] for line in [*expect.get("log_advance", ()), *expect.get("log", ())] if "Bumped group epoch" in line["line"])
    hashes = {int(line.split(" to ")[1].split()[0]): line.split(" to ")[1].partition(" ")[2].rstrip(".") for line in lines}
    for _, record in found:
        if record["rec"] == "GroupMetadata":
            record["hash"] = hashes.get(record.get("epoch"), "")
    return [_record(record, START_MS + at_ms, step.get("group", "g"), topic_ids) for at_ms, record in found if record["rec"] in RECORDS]


def _record(record: dict, at_ms: int, group: str, topic_ids: dict[str, list[int]]) -> Event:
    """A record as jobs/parsing/stored_records.py has it."""
    kind, member = RECORDS[record["rec"]], record.get("member", "")
    event = Event(
        "offsets", "offsets", "offsets/dump.jsonl", 0, at_ms, at_ms, kind, group, member_id=member, reason=record.get("regex") or ""
    )
    if record.get("tombstone"):
        return event._replace(state=kinds.REMOVED)
    if kind == kinds.MEMBER_STORED:
        return event._replace(
            instance_id=record["instance"] or "", client_id=record["client_id"], rebalance_timeout_ms=record["rebalance_timeout_ms"],
            protocols=(Protocol(record["assignor"] or "consumer", tuple(record["topics"]), (), ""),), subscribed_regex=record["regex"],
        )  # fmt: skip
    if kind == kinds.CURRENT_STORED:
        lists = (partitions_of(record[name], topic_ids) for name in ("assigned", "pending_revocation"))
        return event._replace(
            generation=record["prev_epoch"], answer_generation=record["epoch"], state=record["state"],
            assignments=tuple(Assignment(member, one, "") for one in lists),
        )  # fmt: skip
    timed = kind == kinds.TARGET_STORED and record.get("at_ms") is not None
    return event._replace(generation=record.get("epoch", -1), reason=record.get("hash", event.reason), state=kinds.TIMED if timed else "")


def answered(name: str) -> list[dict]:
    """The steps of a trace that the coordinator answered."""
    return [step for step in trace(name)[0]["steps"] if "expect" in step]


def _release(release: str) -> Event:
    return Event("b", "broker", "server.log", 0, START_MS, START_MS, kinds.BROKER_RELEASE, software=release)


def events_of(name: str, evidence: frozenset[str], begins: int = 0) -> list[Event]:
    """What is logged of a trace. `begins`: the first step that is."""
    case = trace(name)[0]
    events = [_release(case["measured_on"])] if "measured_on" in case else []
    topic_ids = case["topic_ids"]
    for step in answered(name)[begins:]:
        events += lines_of(step) if LOG in evidence else ()
        events += records_of(step, topic_ids) if RECORDS_TOPIC in evidence else ()
        events += [answer_of(step, topic_ids)] if REQUESTS in evidence and step["op"] == "heartbeat" else ()
    return [
        event._replace(position=number, correlation_id=number if event.source == "request" else -1) for number, event in enumerate(events)
    ]


@cache
def rows_of(name: str, evidence: frozenset[str], begins: int) -> list[Row]:
    """What the tracker writes about group g."""
    events = events_of(name, evidence, begins)
    if not events:
        return []
    last_ms = max(event.at_ms for event in events) + 100_000
    ends = [
        Event(broker, "clock", "", 0, last_ms, last_ms, kind)
        for broker in sorted({event.broker for event in events})
        for kind in (kinds.CLOCK, kinds.END)
    ]
    return [row for row in Shard(TrackerSettings()).observe([*events, *ends]) if row.values["group_id"] == "g"]


def told(name: str, evidence: frozenset[str]) -> tuple[list[dict], list[dict]]:
    """The rows of `rebalances` and `rebalance_rounds`."""
    rows = rows_of(name, evidence, 0)
    of_protocol = [row.values for row in rows if row.table == "rebalances" and row.values["group_protocol"] == "consumer"]
    return of_protocol, [row.values for row in rows if row.table == "rebalance_rounds"]


def rounds_of(episodes: list[dict]) -> dict[tuple[int, int], tuple[str, str | None]]:
    return {(one["epoch"], one["at_ms"]): (CAUSES[one["cause"]], one["member"]) for episode in episodes for one in episode["rounds"]}
