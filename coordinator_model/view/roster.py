"""Who is a member of a classic group, and in which rebalance each came or left. Only this module writes that.

Whoever comes or leaves does so in the rebalance whose join phase runs; after the end of the phase, in the next one. Lines leave doubt about
that: those of one millisecond have no order, a departure may be logged just after the phase that it ended, and the coordinator counts
members that no line names (`ClassicGroup.numMembers` in "Stabilized group …").
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct, field

from coordinator_model.states import State
from coordinator_model.view import reasons
from coordinator_model.view.members import EndedMembership, ObservedMember, client_in
from coordinator_model.view.outcomes import ABANDONED
from coordinator_model.view.rebalance import Moves, Rebalance, RebalanceTrigger

MADE_KEPT: Final = 8
LEFT_KEPT: Final = 4_096  # moves that no rebalance has followed: in a log without holes each departure begins one
LOGGED_AFTER_MS: Final = 100  # between the end of a join phase and the line about the departure that ended it
REMEMBERED: Final = 64  # memberships kept after their end; the oldest go first
REMEMBERED_MS: Final = 60_000
"""All are kept for so long, however many: a large group may end at once, and both logs report each of its members."""

_LEFT: Final = frozenset({reasons.LEFT, reasons.POLL_TIMEOUT, reasons.ADMIN_REMOVED})


class Roster(Struct, array_like=True):
    """The members of a group, those that left, and the rebalances in which they come and go."""

    group_id: str
    generation: int = -1
    made: list[tuple[int, int]] = []  # the latest generations: when their join phase ended, or the group was empty, and their number
    members: dict[str, ObservedMember] = {}
    complete: bool = False  # `members` are all members
    member_count: int = -1
    pending: dict[str, int] = {}  # member ids that were issued and not used yet: when
    ended: list[EndedMembership] = []
    lost: list[EndedMembership] = []  # that are gone; how they went, a later line may show
    moves: Moves = field(default_factory=Moves)  # since the last join phase: they belong to the next rebalance
    unclaimed: list[RebalanceTrigger] = []  # triggers that no rebalance has followed yet
    open: Rebalance | None = None
    closing: list[Rebalance] = []
    stored: list[str] | None = None  # members of the last generation that was written to __consumer_offsets; None: unknown
    stored_generation: int = -1  # and its number
    untold: int = 0  # members that no line has named, less those of `members` that departed without a line that names them
    unnamed: dict[str, int] = {}  # group.instance.id of a static member whose new id no line has named yet: since when

    def identity(self, member_id: str) -> tuple[str, str, str]:
        """Instance id, client id and host of a member, or of one that departed lately; empty where unknown."""
        member = self.members.get(member_id)
        if member is not None:
            return member.instance_id, member.client_name(), member.client_host
        past = self.ended_membership(member_id)
        return (past.instance_id, past.client_id, past.client_host) if past is not None else ("", "", "")

    def member_of_instance(self, instance_id: str) -> str:
        """The id of the member with this group.instance.id; empty if there is none."""
        return next((m.member_id for m in self.members.values() if instance_id and m.instance_id == instance_id), "")

    def present_or_lost(self, member_id: str) -> ObservedMember | None:
        """A member of the group, or one that is gone while it is not known how."""
        return self.members.get(member_id) or next((lost for lost in self.lost if lost.member_id == member_id), None)

    def ended_membership(self, member_id: str) -> EndedMembership | None:
        """The latest ended membership with this id."""
        return next((old for old in reversed(self.ended) if old.member_id == member_id), None)

    def size(self) -> int:
        """How many members there are, as far as they are known."""
        return len(self.members) + len(self.unnamed) + self.untold - sum(rebalance.moves.missing for rebalance in self.unfinished())

    def unfinished(self) -> list[Rebalance]:
        """The rebalances that are not written yet, oldest first."""
        return [*self.closing, self.open] if self.open is not None else self.closing

    def generation_at(self, at_ms: int) -> int:
        """The group's generation at a time, as far back as the latest are known."""
        if not self.made or self.generation < self.made[-1][1]:
            return self.generation
        return next((number for at, number in reversed(self.made) if at <= at_ms), self.made[0][1] - 1)

    def find_generation(self, generation: int) -> None:
        """A line finds the group in a generation. Of a new one it is not known how many members it has."""
        if generation > self.generation >= 0:
            self.member_count = -1
        self.generation = max(self.generation, generation)

    def make_generation(self, at_ms: int, generation: int) -> None:
        """Takes a new generation of the group."""
        self.find_generation(generation)
        self.generation = generation
        self.made = [*((at, number) for at, number in self.made if at <= at_ms and number < generation), (at_ms, generation)][-MADE_KEPT:]

    def issue(self, member_id: str, at_ms: int) -> None:
        """The coordinator issued a member id: it is no member yet (KIP-394)."""
        if member_id not in self.members:
            self.pending[member_id] = at_ms

    def drop_id(self, member_id: str) -> bool:
        """An id that was issued is not used any more. False: it was not issued, or is that of a member."""
        return self.pending.pop(member_id, None) is not None

    def add(self, member_id: str, at_ms: int, *, came: bool = True, is_new: bool = False, of: Rebalance | None = None) -> ObservedMember:
        """The member with this id, a new one if needed. `came`: it joined then; else it is not known when.

        `is_new`: the coordinator says that it added it, so it is no static member whose new id was not named yet. `of`: the rebalance whose
        answer shows it, which may be logged after the assignment that ended the rebalance.
        """
        member, running = self.members.get(member_id), self.open
        if member is None:
            replacement = None if is_new else self._named(member_id)
            member = self.members[member_id] = replacement or ObservedMember(member_id, joined_ms=at_ms, found=not came)
            self.pending.pop(member_id, None)
            if replacement is None:
                if of is not None and of is not running and of.count_before >= 0:
                    of.moves.note(member_id, came=True)
                in_next = running is None or 0 <= running.joined_ms < at_ms
                moves = self.moves if running is None or in_next else running.moves
                moves.note(member_id, came=True, is_new=came and (running is not None or is_new))
        member.vouched = member.vouched or came
        return member

    def replace(self, old_id: str, new_id: str, *, is_known: bool) -> None:
        """A static member goes on under a new id (KIP-345, replaceStaticMember): nobody comes or leaves. `is_known`: it had come."""
        for moves in [self.moves, *([self.open.moves] if self.open is not None else [])]:
            same = old_id if moves.has_joined(old_id) else new_id
            if moves.has_joined(same) and not (same == new_id and is_known):
                moves.note(same, came=False)
        self._rename_stored(old_id, new_id)

    def replace_unnamed(self, old_id: str, instance_id: str, at_ms: int) -> None:
        """A static member goes on under a new id, which no line has named yet (Kafka 3.0 and later)."""
        self.unnamed[instance_id] = at_ms
        self._rename_stored(old_id, instance_id)

    def _rename_stored(self, old_id: str, new_id: str) -> None:
        """A replacement in a Stable group is written: the group that is stored has the new id."""
        if self.stored is not None and self.open is None:
            self.stored = [new_id if member_id == old_id else member_id for member_id in self.stored]

    def _named(self, member_id: str) -> ObservedMember | None:
        """The static member whose new id this is, if the line that reported its return did not name it."""
        instance_id = client_in(member_id, "")
        since_ms = self.unnamed.pop(instance_id, None)
        if since_ms is None:
            return None
        self.stored = [member_id if m == instance_id else m for m in self.stored] if self.stored is not None else None
        for moves in [self.moves, *(r.moves for r in self.unfinished() if r.joined_ms < 0 or since_ms <= r.joined_ms)]:
            # It may have come since, under the id that was replaced.
            old = {m for m in moves.joined() if client_in(m, "") == instance_id and m not in self.members}
            moves.by_name = {member_id if m in old else m: came for m, came in moves.by_name.items()}
        return ObservedMember(member_id, instance_id, joined_ms=since_ms)

    def take_out(self, member_id: str) -> ObservedMember | None:
        """Takes a member out whose membership ended, or that was lost before; None if its end is known already."""
        lost = next((one for one in self.lost if one.member_id == member_id), None)
        if lost is not None:
            self.lost.remove(lost)
            return lost
        member = self.members.pop(member_id, None)
        if member is None and self.ended_membership(member_id) is not None:
            return None
        member = member or self._named(member_id)
        may_have_joined = self.complete and self.open is not None and self.open.joined_ms < 0 and self.open.named != member_id
        if member is None and (member_id in self.pending or may_have_joined):
            self.add(member_id, self.pending.get(member_id, -1))  # Scala brokers do not log at INFO that it joined
            member = self.members.pop(member_id)
        elif member is None and (self.untold > 0 or self.complete):
            self.untold, self.complete = self.untold - 1, False  # it is one of those that were counted
        return member or ObservedMember(member_id)

    def end(self, ended: EndedMembership, *, was_lost: bool = False) -> None:
        """Remembers a membership that has ended."""
        self.ended.append(ended)
        while len(self.ended) > REMEMBERED and self.ended[0].at_ms < ended.at_ms - REMEMBERED_MS:
            del self.ended[0]
        if not was_lost and ended.kind != reasons.REPLACED:
            self._depart(ended)

    def lose(self, ended: EndedMembership) -> None:
        """A member is gone. Later lines may show how it went."""
        del self.members[ended.member_id]
        self.lost.append(ended.changed())
        self._depart(ended)

    def _depart(self, ended: EndedMembership) -> None:
        """Notes a departure in the rebalance that it belongs to.

        Who departs after the join phase begins the next rebalance. But a coordinator may log a departure just after the end of the phase
        that it ended: then the count of members, which it logs with the end, is lower than that of the members known.
        """
        running, member_id = self.open, ended.member_id
        by_it = next((r for r in self.unfinished() if r.moves.missing and 0 <= ended.at_ms <= r.joined_ms + LOGGED_AFTER_MS), None)
        if by_it is not None:
            running = by_it
            running.moves.missing -= 1
            ended.at_ms = min(ended.at_ms, running.joined_ms)
            self.complete = running.moves.missing == self.untold == 0
        elif (
            running is not None and 0 <= running.joined_ms <= ended.at_ms and (ended.at_ms > running.joined_ms or running.count_after >= 0)
        ):
            running = None
        if running is not None and member_id not in running.moves.by_name:
            running.stopped[member_id] = ended.stopped_ms()
        moves = running.moves if running is not None else self.moves
        moves.note(member_id, came=False)
        if running is None and len(moves.by_name) > LEFT_KEPT:
            del moves.by_name[next(iter(moves.by_name))]

    def begin(self, rebalance: Rebalance) -> None:
        """A rebalance begins: who came or left since the join phase before did so in it."""
        # In a log with holes one may have departed long ago.
        rebalance.stopped = {m: old.stopped_ms() for m in self.moves.left() if (old := self.ended_membership(m)) is not None}
        rebalance.moves.by_name = {m: came for m, came in self.moves.by_name.items() if m in self.members or not came}
        if rebalance.from_state is State.EMPTY:
            rebalance.count_before = 0
            self.store_empty(max(rebalance.old_generation, 0))
        elif self.complete:
            rebalance.count_before = self.size() - len(rebalance.moves.joined()) + len(rebalance.moves.left())
        self.unclaimed, self.moves = [], Moves()

    def begin_next(self, member_id: str, cause: str, at_ms: int) -> None:
        """Takes members that joined or left out of the join phase that has just ended: they did so after its end.

        Lines of one millisecond have no order. The reason of the next rebalance names who began it, and the coordinator's count at the end
        of the phase shows how many others came or went after it.
        """
        running = next(reversed(self.unfinished()), None)
        if running is not None and running.exact and running.joined_ms < 0 and running.outcome in ("", ABANDONED):
            ended = self.ended_membership(member_id) if member_id not in self.members else None  # lines about its end are missing
            has_come = cause == reasons.MEMBER_JOINED and running.moves.has_joined(member_id)
            if has_come or (ended is not None and ended.at_ms >= running.started_ms):
                self._begin_with(running, member_id, came=has_come)
            self.complete = self.complete and not self.pending  # they may have joined
        if running is None or running.joined_ms != at_ms or running.count_after < 0:
            return
        moves = running.moves
        if cause == reasons.MEMBER_JOINED and moves.has_joined(member_id):
            self._pass_on(running, member_id, came=True)
        left = [one.member_id for one in self.ended if one.at_ms == at_ms and one.kind in _LEFT and not self.moves.has_left(one.member_id)]
        left.sort(key=lambda departed: departed == member_id)  # the reason names one of them
        began = cause in (reasons.MEMBER_LEFT, reasons.POLL_TIMEOUT) and (not member_id or member_id in left)  # Scala may log it later
        after = max(moves.unnamed, began)
        for departed in left[-after:] if after else ():
            self._pass_on(running, departed, came=False)
        came = [added for added in moves.joined() if added in self.members and self.members[added].joined_ms == at_ms]
        for added in came[-moves.missing :] if moves.missing else ():
            self._pass_on(running, added, came=True)
        self.complete = self.untold == moves.missing == 0

    def _pass_on(self, running: Rebalance, member_id: str, *, came: bool) -> None:
        """A member came or left in the millisecond in which the join phase ended, and after that: in the next rebalance."""
        moves = running.moves
        self._begin_with(running, member_id, came=came)
        if came and moves.missing:
            moves.missing -= 1
        elif came:
            moves.unnamed += running.count_before >= 0
            self.untold += 1
        elif moves.unnamed:
            moves.unnamed, self.untold = moves.unnamed - 1, self.untold - 1
        else:
            moves.missing += 1

    def _begin_with(self, running: Rebalance, member_id: str, *, came: bool) -> None:
        """Takes a move out of a rebalance into the next one."""
        running.moves.note(member_id, came=not came)
        self.moves.note(member_id, came=came)
        if not came:
            self.unclaimed += [t for t in running.triggers if t.member_id == member_id]
            running.triggers = [t for t in running.triggers if t.member_id != member_id]

    def count(self, running: Rebalance, members: int) -> None:
        """The coordinator counts the members as a join phase ends; -1: it does not (Kafka 0.9 to 2.7)."""
        for member_id, at_ms in list(self.pending.items()):
            # Scala brokers do not log at INFO that a pending id joined: the count shows whether one that is unused so far did.
            if self.size() < members:
                self.add(member_id, at_ms)
        self.member_count = running.count_after = members
        if members >= 0:
            more = members - self.size()
            running.moves.missing = max(-more, 0)
            running.moves.unnamed = max(more, 0) if running.count_before >= 0 else 0  # else they may have been there before
            self.untold += max(more, 0)
        self.complete = members >= 0 and self.untold == running.moves.missing == 0

    def list_members(self, running: Rebalance, members: int) -> None:
        """A list of all members ends the join phase: nobody is unknown any more."""
        running.listed, running.moves.missing, running.moves.unnamed = True, 0, 0
        self.member_count = running.count_after = members
        self.members_are_known()

    def members_are_known(self, missing: int = 0) -> None:
        """Notes that `members` are all members: a list was read, or there are none. `missing`: others that went, whom no line names."""
        self.complete, self.untold = True, missing
        self.unnamed.clear()
        for rebalance in self.unfinished() if not missing else ():
            rebalance.moves.missing = 0

    def nobody_is_there(self) -> None:
        """The group has no members, and nobody has an id to become one."""
        self.members.clear()
        self.members_are_known()
        self.pending.clear()
        self.member_count = 0

    def empty(self, running: Rebalance, at_ms: int, since: Collection[str]) -> None:
        """A rebalance ends because everybody has left. `since`: members that the coordinator added to the empty group."""
        for member_id in since:
            if running.moves.has_joined(member_id):
                running.moves.note(member_id, came=False)
            self.moves.note(member_id, came=True)
        lost = [one.member_id for one in self.lost if one.at_ms == at_ms and running.moves.has_left(one.member_id)]
        before = sum(rebalance.moves.missing for rebalance in self.closing)
        more = self.untold - before
        if more < 0:  # so many of them went before, and no line says which
            more += len(lost)
            for member_id in lost:
                running.moves.note(member_id, came=True)
        running.moves.missing = max(more, 0) if running.count_before >= 0 else 0  # whom no line names went with the others
        self.members_are_known(before + running.moves.missing)
        self.member_count = running.count_after = 0
        self.pending.clear()
        self.store_empty(running.generation)

    def settle(self, rebalance: Rebalance) -> None:
        """A rebalance is written: whom it lost without a name stays so."""
        self.untold -= rebalance.moves.missing

    def store_empty(self, generation: int) -> None:
        """A generation without members is written."""
        self.stored, self.stored_generation = [], generation

    def store(self, rebalance: Rebalance | None) -> None:
        """The members of a rebalance that ended are written, also those that left since then. None: whether they were, no line shows."""
        self.stored = None
        if rebalance is not None and self.complete:
            ended = [old for m in self.moves.left() if (old := self.ended_membership(m)) is not None]
            since = [old.member_id for old in ended if old.at_ms >= rebalance.ended_ms]
            self.stored = [*(m for m in self.members if not self.moves.has_joined(m)), *since, *self.unnamed]
        if rebalance is not None:
            self.stored_generation = rebalance.generation

    def load(self, members: int) -> None:
        """A coordinator read the group back, and has so many members; -1: it does not say (Kafka 0.9 to 2.7)."""
        if members == 0:
            self.nobody_is_there()
        elif members > 0:
            self.member_count = members
            self.untold += members - self.size()
            self.complete = self.complete and not self.untold

    def read_back(self, at_ms: int, stored: Collection[str]) -> None:
        """A coordinator read back these members. It does not know who joined since, and still has those who departed since as ghosts."""
        self.members = {m: member for m, member in self.members.items() if m in stored}
        for member_id in sorted(set(stored) - self.members.keys()):
            old = self.ended_membership(member_id)
            if old is None:  # a static member that no line has named
                continue
            self.lost = [lost for lost in self.lost if lost.member_id != member_id]
            ghost = self.members[member_id] = ObservedMember(member_id, old.instance_id, old.client_id, old.client_host, ghost=True)
            ghost.session_timeout_ms, ghost.rebalance_timeout_ms = old.session_timeout_ms, old.rebalance_timeout_ms
            ghost.partitions, ghost.renewed_ms, ghost.sessions_seen = old.partitions, at_ms, old.seen_ms >= 0
            self.ended.remove(old)
        self.unnamed = {instance_id: since_ms for instance_id, since_ms in self.unnamed.items() if instance_id in stored}
        self.moves, self.untold = Moves(), 0
        self.make_generation(at_ms, self.stored_generation)  # the number of one that was not written is used again

    def forget_requests(self) -> None:
        """Another coordinator does not know which ids were issued, and who was about to begin a rebalance."""
        self.pending.clear()
        self.unclaimed = []

    def doubt(self) -> None:
        """Others may be members, too."""
        self.complete = False

    def forget(self) -> None:
        """No line shows any more who is a member."""
        self.members.clear()
        self.doubt()

    def lose_sight(self, since_ms: int) -> None:
        """Lines are missing: who is a member is not known, but for those seen since then."""
        self.members = {m: member for m, member in self.members.items() if max(member.joined_ms, member.alive_ms) >= since_ms}
        left = {old.member_id for old in self.ended if old.at_ms >= since_ms}
        self.moves.by_name = {m: came for m, came in self.moves.by_name.items() if m in (self.members if came else left)}
        self.unclaimed = [trigger for trigger in self.unclaimed if trigger.at_ms >= since_ms]
        self.pending = {m: at_ms for m, at_ms in self.pending.items() if at_ms >= since_ms}
        self.complete, self.member_count, self.untold, self.unnamed = False, -1, 0, {}
        self.stored, self.stored_generation = None, -1

    def take_over(self, members: dict[str, ObservedMember], count: int) -> None:
        """The group follows the classic protocol from now on. `count`: how many members it had; -1: not all are known."""
        self.members, self.complete, self.member_count = members, count >= 0, count
        self.moves, self.lost, self.unnamed, self.pending, self.untold, self.stored = Moves(), [], {}, {}, 0, None
