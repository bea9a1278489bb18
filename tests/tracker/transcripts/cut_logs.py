"""Scripts of what a broker logs about a group, to be cut: a line lost, two swapped, a log that begins late.

    20002 prepares-join 1 c

Each line has the ms of the story, a word for the broker's sentence, and what the sentence names: members by short names, and by `=a` the
client id, or the group.instance.id, that the member id of `a` begins with. The parser reads the sentence as the broker writes it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from coordinator_model.events import Event, MemberEntry
from coordinator_model.view.rows import Row
from jobs.parsing import coordinator_log
from tests.tracker.story import Story, table

_PREPARES: Final = "Preparing to rebalance group {g} in state PreparingRebalance with old generation {0} (reason: "
_STATIC: Final = "Static member with groupInstanceId={0} and unknown member id joins group {g} in {1} state. "
JAVA: Final = {
    "issues": "Dynamic member with unknown member id joins group {g} in {1} state. "
    "Created a new member id {0} and requesting the member to rejoin with this id.",
    "adds": "Pending dynamic member with id {0} joins group {g} in {1} state. Adding to the group now.",
    "adds-static": _STATIC + "Created a new member id {2} for this member and added to the group.",
    "replaces": _STATIC + "Replacing previously mapped member {2} with this groupInstanceId.",
    "fences": "Request memberId={1} for static member with groupInstanceId={0} "
    "is fenced by existing memberId={2} during operation heartbeat",
    "prepares-join": _PREPARES + "Adding new member {1} with group instance id null; client reason: not provided).",
    "prepares-static": _PREPARES + "Adding new member {1} with group instance id {2}; client reason: not provided).",
    "prepares-expiry": _PREPARES + "removing member {1} on heartbeat expiration.).",
    "prepares-leave": _PREPARES + "explicit `LeaveGroup` request for ({1}) members.).",
    "prepares-unsynced": _PREPARES + "Removing [{1}] on pending sync request expiration).",
    "prepares-leader": _PREPARES + "Leader {1} re-joining group during Stable; client reason: not provided).",
    "stabilized": "Stabilized group {g} generation {0} with {1} members.",
    "assigned": "Assignment received from leader {1} for group {g} for generation {0}. The group has {2} members, 0 of which are static.",
    "fails": "Member {0} in group {g} has failed, removing it from the group.",
    "leaves": "[Group {g}] Member {0} has left group through explicit `LeaveGroup` request; client reason: the consumer is being closed",
    "empty": "Group {g} with generation {0} is now empty.",
}
_PREPARES_SCALA: Final = _PREPARES.replace("(reason", "(__consumer_offsets-9) (reason")
SCALA: Final = JAVA | {
    "issues": JAVA["issues"].replace("requesting", "request"),
    "prepares-join": _PREPARES_SCALA + "Adding new member {1} with group instance id None; client reason: not provided)",
    "prepares-expiry": _PREPARES_SCALA + "removing member {1} on heartbeat expiration)",
    "prepares-leave": _PREPARES_SCALA + "Removing member {1} on LeaveGroup; client reason: the consumer is being closed)",
    "stabilized": "Stabilized group {g} generation {0} (__consumer_offsets-9) with {1} members",
    "fails": "Member {0} in group {g} has failed, removing it from the group",
    "leaves": "Member MemberMetadata(memberId={0}, groupInstanceId=None, clientId={client}, clientHost=/10.0.0.7, sessionTimeoutMs=10000, "
    "rebalanceTimeoutMs=30000, supportedProtocols=List(range)) has left group {g} through explicit `LeaveGroup`; "
    "client reason: the consumer is being closed",
    "empty": "Group {g} with generation {0} is now empty (__consumer_offsets-9)",
}


class Cast:
    """The client ids of members, by their short names, and the member ids that a coordinator makes of them."""

    def __init__(self, clients: Mapping[str, str]) -> None:
        self.clients = clients
        self.ids = {name: f"{client}-{number:08x}-0000-4000-8000-000000000000" for number, (name, client) in enumerate(clients.items())}
        self._names = {member_id: name for name, member_id in self.ids.items()}

    def name(self, member_id: str | None) -> str:
        """The short name of a member; "-" for nobody."""
        return "-" if member_id is None else self._names.get(member_id, member_id)

    def named(self, word: str) -> str:
        """What stands in a sentence for a word of a script."""
        return self.clients[word[1:]] if word.startswith("=") else ", ".join(self.ids.get(one, one) for one in word.split(","))


def lines(script: str) -> list[str]:
    """The lines of a script."""
    return [line.strip() for line in script.strip().splitlines()]


def log(story: Story, script: Iterable[str], cast: Cast, sentences: Mapping[str, str] = JAVA) -> Story:
    """Adds the lines of a script to a story, as the parser reads them."""
    for line in script:
        at, word, *words = line.split(" ")
        sentence = sentences[word].format(*map(cast.named, words), g=story.group, client=cast.clients.get(words[0], ""))
        text = f"[2027-01-15 08:00:00,000] INFO [GroupCoordinator 1]: {sentence} (kafka.coordinator.group.GroupCoordinator)"
        columns = coordinator_log.row(text, 0)
        fields: dict[str, Any] = {name: value for name, value in columns.items() if name in Event._fields and value is not None}
        fields["members"] = tuple(MemberEntry(one["member_id"], "", 0, "", None) for one in fields.get("members", ()))
        story.at(int(at)).add(fields.pop("source"), fields.pop("kind"), **{"group_id": "", **fields})
    return story


def rebalances(rows: Iterable[Row], cast: Cast) -> list[str]:
    """A line for each rebalance: generation, outcome, cause, who began it, members before and after, who came and went.

    Numbers behind the names count those that no line names. "unbegun", "unended": no line shows its beginning, or its end.
    """
    made = []
    for row in table(rows, "rebalances"):
        moves = sorted(f"+{cast.name(m)}" for m in row["joined"]) + [f"+{row['joined_unnamed']}"] * (row["joined_unnamed"] > 0)
        moves += sorted(f"-{cast.name(m)}" for m in row["left"]) + [f"-{row['left_unnamed']}"] * (row["left_unnamed"] > 0)
        members = ["?" if row[name] is None else str(row[name]) for name in ("members_before", "members_after")]
        unseen = ["unbegun"] * (not row["start_seen"]) + ["unended"] * (not row["end_seen"])
        words = [str(row["generation"]), row["outcome"], row["cause"], cast.name(row["member_id"]), " > ".join(members), *moves, *unseen]
        made.append(" ".join(words))
    return made


def ends(rows: Iterable[Row], cast: Cast) -> list[str]:
    """How memberships ended, in order of time."""
    return [f"{row['ended_at']} {row['end_kind']} {cast.name(row['member_id'])}" for row in table(rows, "member_sessions")]


def findings(rows: Iterable[Row], cast: Cast) -> list[str]:
    """Code and member of each finding, and its client id."""
    return [f"{row['code']} {cast.name(row['member_id'])} of {row['client_id']}" for row in table(rows, "findings")]
