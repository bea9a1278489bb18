"""Stories of a group as records of __consumer_offsets and polls tell them."""

from coordinator_model import events as kinds
from coordinator_model.events import Assignment, MemberEntry
from tests.tracker.story import EXPIRED, JOINED, Story, table

UUID = "-00000000-0000-4000-8000-00000000000"
A, B, C = (f"app-{name}{UUID}{number}" for number, name in enumerate("abc"))
SIX = tuple(f"orders-{n}" for n in range(6))


class RecordStory(Story):
    """Adds records and polls to a story."""

    def _told(self, source, kind, members, joined=0, topics=None, instances=None, **fields):
        broker, self.broker = self.broker, source
        names = tuple(members)
        entries = tuple(MemberEntry(m, (instances or {}).get(m, ""), 0, "", (topics or {}).get(m, ("orders",))) for m in names)
        self.add(
            source,
            kind,
            joined,
            members=entries,
            member_count=len(names),
            assignments=tuple(Assignment(m, tuple(p), str(p)) for m, p in dict(members).items()),
            **fields,
        )
        for entry in entries:
            self._line -= 1  # of the same line
            known = {"member_id": entry.member_id, "instance_id": entry.instance_id, "client_id": "app", "client_host": "10.0.0.9"}
            self.add(source, kinds.GROUP_MEMBER, generation=fields.get("generation", -1), **known)
        self.broker = broker
        return self

    def stored(self, generation, members=None, *, took=10, leader="", **fields):
        """The group is stored, `took` ms after its state was entered."""
        members = members or {}
        state = "Stable" if members else "Empty"
        leader = leader or next(iter(members), "")
        return self._told("offsets", kinds.GROUP_STORED, members, took, generation=generation, state=state, leader_id=leader, **fields)

    def deleted(self):
        """The record is deleted."""
        return self._told("offsets", kinds.GROUP_STORED, {}, state="Dead")

    def described(self, state, members=None, **fields):
        """The group is described."""
        return self._told("poll", kinds.GROUP_DESCRIBED, members or {}, state=state, **fields)

    def consumer_group(self, state, members=None, **fields):
        """The group is described, and follows the consumer protocol."""
        return self._told("poll", kinds.CONSUMER_GROUP_DESCRIBED, members or {}, state=state, **fields)


def split(*members):
    """The six partitions, shared out."""
    return {member: SIX[number :: len(members)] for number, member in enumerate(members)}


def rebalances(story):
    return table(story.rows(), "rebalances")


def joined_by_two():
    story = RecordStory()
    story.at(0).stored(0)
    story.at(3_010).stored(1, split(A), protocol="range")
    return story.at(60_010).stored(2, split(A, B), protocol="range")


def logged():
    story = RecordStory()
    story.at(0).log_preparing(0, JOINED.format(A), A)
    story.log(kinds.MEMBER_ADDED, member_id=A, state="Empty")
    story.at(3_000).log_stabilized(1, 1).at(3_010).log_assignment(1, A, 1)
    story.at(60_000).log_preparing(1, JOINED.format(B), B)
    story.log(kinds.MEMBER_ADDED, member_id=B, state="Stable")
    story.at(61_000).log_stabilized(2, 2).at(61_020).log_assignment(2, A, 2)
    story.at(90_000).log(kinds.MEMBER_FAILED, member_id=B)
    story.log_preparing(2, EXPIRED.format(B), B)
    return story.at(91_000).log_stabilized(3, 1).at(91_005).log_assignment(3, A, 1)
