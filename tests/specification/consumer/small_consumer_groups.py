"""Consumer groups of few members, and what an outcome shows, for the tests of this folder."""

from dataclasses import replace

from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig, KafkaVersion
from coordinator_model.specification.consumer import consumer_protocol
from coordinator_model.specification.consumer.config import ConsumerGroupConfig
from coordinator_model.specification.consumer.coordinator import ConsumerCoordinator
from coordinator_model.specification.consumer.effects import RecordsWritten
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeat
from coordinator_model.specification.consumer.topics import Topic, TopicId, TopicImage
from coordinator_model.specification.requests import JoinAnswer, JoinGroup, SyncGroup

KAFKA_4_2 = KafkaVersion.of("4.2.0")
A, B, C = TopicId(0, 1), TopicId(0, 2), TopicId(0, 3)
IMAGE = TopicImage([Topic("a", A, 4), Topic("b", B, 2)])
OWNS_NOTHING = {}


def new_coordinator(image=IMAGE, now_ms=0, release="4.2.0", **settings):
    return ConsumerCoordinator(replace(ConsumerGroupConfig.of(release), **settings), now_ms, range(50), image)


def joining(member_id, *topics, **fields):
    return ConsumerGroupHeartbeat(member_id, 0, rebalance_timeout_ms=60_000, topics=topics or ("a",), owned=OWNS_NOTHING)._replace(**fields)


def beat(member_id, epoch, **fields):
    return ConsumerGroupHeartbeat(member_id, epoch)._replace(**fields)


class SmallGroup:
    """Group g of a coordinator. Time stands still unless a call says otherwise."""

    def __init__(self, image=IMAGE, **settings):
        self.coordinator = new_coordinator(image, **settings)
        self.now_ms = 0

    def ask(self, request, now_ms=None, append_error=Error.NONE):
        self.now_ms = self.now_ms if now_ms is None else now_ms
        self.outcome = self.coordinator.handle("g", request, self.now_ms, 1, append_error=append_error)
        return next((reply.answer for reply in self.outcome.replies if reply.ticket == 1), None)

    def after(self, *requests):
        """The group, once it has answered these requests, whatever it said."""
        for request in requests:
            self.ask(request)
        return self

    @property
    def state(self):
        return self.coordinator.groups["g"].state

    def member(self, member_id):
        return self.state.members[member_id]

    def records(self):
        return [record for _, effect in self.outcome.effects if isinstance(effect, RecordsWritten) for record in effect.records]


def of_a(*partitions):
    return {A: frozenset(partitions)}


def protocols(*topics, owned=(), generation=-1, name="range"):
    return ((name, consumer_protocol.write_subscription(consumer_protocol.EmbeddedSubscription(topics or ("a",), owned, generation))),)


def classic_join(member_id="", fresh="k", **fields):
    made = JoinGroup(member_id, 10_000, 30_000, "consumer", protocols(), api_version=3, fresh_member_id=fresh)
    return made._replace(**fields)


def with_classic_member():
    """m has a:0,1; k, which speaks the classic protocol, has a:2,3. Stable in epoch 2."""
    group = SmallGroup().after(joining("m"))
    assert group.ask(classic_join()) == JoinAnswer(Error.NONE, "k", 2, protocol_type="consumer", protocol="range")
    group.after(beat("m", 1), beat("m", 1, owned=of_a(0, 1)), classic_join("k", protocols=protocols(generation=2)))
    assert consumer_protocol.read_assignment(group.ask(SyncGroup("k", 2)).assignment).partitions == (("a", (2, 3)),)
    assert group.state.phase == "Stable"
    return group


def stable_classic_group(assignment=b"", metadata=None, **settings):
    """A classic group in which k has all partitions of topic a."""
    settings.setdefault("classic", CoordinatorConfig(CoordinatorConfig.of("4.2.0").version, group_initial_rebalance_delay_ms=0))
    group = SmallGroup(**settings).after(classic_join(protocols=(("range", metadata),) if metadata is not None else protocols()))
    group.ask(SyncGroup("k", 1, (("k", assignment or consumer_protocol.write_assignment((("a", (0, 1, 2, 3)), ("gone", (0,))), 3)),)))
    return group
