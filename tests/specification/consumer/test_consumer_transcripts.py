"""Transcripts of the consumer protocol: what a Kafka engineer would see on the wire and in `__consumer_offsets`, as text.

Each file in transcripts/ is a story. Lines that begin with > are what clients do and when; the lines below each are what the
coordinator did until then, with the times. After a change run with REWRITE_TRANSCRIPTS=1 and read the difference: keep it only if you
know why it is right.

    > 0 topics a=4 b=2           the topics of the cluster, with their partitions; 0: deleted
    > 0 A joins a b              A sends epoch 0 and subscribes to a and b. Options: instance=i, regex=a.*, assignor=range, timeout=20000
    > 0 A heartbeats             with its epoch. Options as above; `owns`: it reports all it was assigned; `owns=a:0,1`: these partitions;
                               `epoch=1`: this epoch
    > 0 A leaves | goes away     epoch -1, epoch -2
    > 9000                       time passes
    > 0 coordinator unload | load
"""

from pathlib import Path

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.effects import GroupEpochBumped, TargetComputed
from coordinator_model.specification.consumer.records import CurrentMemberAssignment, RegularExpression, TargetAssignmentMember
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeat
from coordinator_model.specification.consumer.topics import Topic, TopicId, TopicImage
from tests.specification.consumer.small_consumer_groups import new_coordinator
from tests.specification.retelling import assert_goes_as_it_is_told

FOLDER = Path(__file__).parent / "transcripts"


class ConsumerStory:
    """Executes the commands of one transcript."""

    def __init__(self):
        self.coordinator = new_coordinator(TopicImage())
        self.epochs = {}
        self.assigned = {}
        self.created = 0

    def tell(self, command):
        at, *words = command.split()
        at_ms = int(at)
        yield from self.lines(self.coordinator.advance(at_ms))
        if not words:
            return
        who, *rest = words
        if who == "topics":
            outcome = self.coordinator.change_topics({name: self.topic(name, int(count)) for name, _, count in _pairs(rest)}, at_ms)
        elif who == "coordinator":
            outcome = getattr(self.coordinator, rest[0])(self.coordinator.partition("g"), at_ms)
        else:
            outcome = self.coordinator.handle("g", self.request(who, *rest), at_ms, who)
        yield from self.lines(outcome)

    def topic(self, name, partitions):
        known = self.coordinator.image.named(name)
        self.created += known is None
        topic_id = known.topic_id if known else TopicId(0, self.created)
        return Topic(name, topic_id, partitions) if partitions else None

    def request(self, who, verb, *options):
        topics = tuple(option for option in options if option.isalpha() and option not in ("owns", "away"))
        named = {name: value for name, sign, value in _pairs(options) if sign}
        epoch = {"joins": 0, "leaves": -1, "goes": -2}.get(verb, int(named.get("epoch", self.epochs.get(who, 0))))
        owned = self.assigned.get(who, {}) if "owns" in options else None
        if "owns" in named:
            owned = self.partitions(named["owns"])
        made = ConsumerGroupHeartbeat(
            who, epoch, named.get("instance"), regex=named.get("regex"), assignor=named.get("assignor"), owned=owned
        )
        if verb == "joins":
            timeout_ms = int(named.get("timeout", 60_000))
            return made._replace(rebalance_timeout_ms=timeout_ms, topics=topics, owned={})
        return made._replace(topics=topics or None)

    def partitions(self, text):
        owned = {}
        for one in text.split("+"):
            name, _, numbers = one.partition(":")
            owned[self.coordinator.image.named(name).topic_id] = frozenset(map(int, numbers.split(",")))
        return owned

    def lines(self, outcome):
        for _, effect in outcome.effects:
            yield from (f"{effect.at_ms:>6}  {line}" for line in self.effect(effect))
        for reply in outcome.replies:
            answer = reply.answer
            if answer.error is not Error.NONE:
                line = answer.error.name + (f": {answer.message}" if answer.message else "")
            else:
                self.epochs[reply.ticket] = answer.epoch
                line = f"epoch {answer.epoch}"
                if answer.assignment is not None:
                    self.assigned[reply.ticket] = answer.assignment
                    line += f", assigned {self.named(answer.assignment)}"
            yield f"{reply.at_ms:>6}  {reply.ticket} <- {line}"

    def effect(self, effect):
        if isinstance(effect, GroupEpochBumped):
            yield f"group: epoch {effect.epoch}: {effect.cause.value}" + (f" ({effect.member_id})" if effect.member_id else "")
        elif isinstance(effect, TargetComputed):
            yield f"group: target of epoch {effect.epoch} by {effect.assignor}"
        else:
            for record in effect.records:
                yield from self.record(record)

    def record(self, record):
        if isinstance(record, TargetAssignmentMember):
            yield f"group: target of {record.member_id}: {self.named(dict(record.partitions))}"
        elif isinstance(record, CurrentMemberAssignment):
            line = f"group: {record.member_id} {record.state.value} in epoch {record.epoch}, has {self.named(record.assigned)}"
            yield line + (f", gives up {self.named(record.pending)}" if record.pending else "")
        elif isinstance(record, RegularExpression):
            yield f"group: {record.regex} is {' '.join(record.topics) or 'no topic'}"

    def named(self, partitions):
        image = self.coordinator.image
        names = {topic_id: image.with_id(topic_id).name if image.with_id(topic_id) else "deleted" for topic_id in partitions}
        parts = sorted(f"{names[topic_id]}:{','.join(map(str, sorted(numbers)))}" for topic_id, numbers in partitions.items())
        return " ".join(parts) or "nothing"


def _pairs(words):
    return [word.partition("=") for word in words]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_the_story_of_a_consumer_group_goes_as_it_is_told(path):
    assert_goes_as_it_is_told(path, lambda _: ConsumerStory())
