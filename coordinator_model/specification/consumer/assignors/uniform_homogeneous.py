"""The `uniform` assignor for members that all subscribe to the same topics. Kafka: `UniformHomogeneousAssignmentBuilder`.

Members keep what they have, up to their quota; the rest goes to those that have less. No share differs from another by more than one.
"""

from __future__ import annotations

from coordinator_model.specification.consumer.assignors.group_spec import GroupSpec, Share
from coordinator_model.specification.consumer.member import OrderedPartitions
from coordinator_model.specification.consumer.topics import TopicId
from coordinator_model.specification.hash_maps import capacity_of_copy, hash_set


def assign_uniformly(spec: GroupSpec) -> dict[str, OrderedPartitions]:
    """The share of each member."""
    first = spec.members[next(iter(spec.members))]
    if not first.names:
        return {}
    return _HomogeneousAssignment(spec, first.topic_ids(spec.image), len(first.names)).shares()


class _HomogeneousAssignment:
    def __init__(self, spec: GroupSpec, topic_ids: list[TopicId], names: int) -> None:
        self.spec = spec
        self.topic_ids = hash_set(topic_ids, max(capacity_of_copy(names), 16))  # names that do not exist count for the capacity
        self.quota, self.extras = divmod(sum(map(spec.partitions_of, self.topic_ids)), len(spec.members))
        self.unassigned = [
            (topic_id, partition)
            for topic_id in self.topic_ids
            for partition in range(spec.partitions_of(topic_id))
            if (topic_id, partition) not in spec.assigned
        ]
        self.room: list[tuple[str, int]] = []
        """Members that get more, and how many partitions."""

    def shares(self) -> dict[str, OrderedPartitions]:
        kept = {member_id: self._keep(member_id, at) for at, member_id in enumerate(self.spec.members)}
        rest = iter(self.unassigned)
        for member_id, room in self.room:
            kept[member_id].working()
            for _, (topic_id, partition) in zip(range(room), rest):  # noqa: B905 (what is left over goes to the next member)
                kept[member_id].give(topic_id, partition)
        return {member_id: share.in_order() for member_id, share in kept.items()}

    def _keep(self, member_id: str, position: int) -> Share:
        """`maybeRevokePartitions`: what the member keeps of its old share."""
        share = Share(self.spec.members[member_id].share)
        with_extra = self.extras > 0
        quota = self.quota + with_extra
        for topic_id, partitions in share.old:
            if topic_id not in self.topic_ids:
                share.working().remove(topic_id)
                continue
            for partition in partitions[quota:]:
                share.take(topic_id, partition)
                self.unassigned.append((topic_id, partition))
            quota -= min(quota, len(partitions))
        if quota > 0 and with_extra and len(self.spec.members) - position > self.extras:
            quota -= 1
            with_extra = False
        if quota > 0:
            self.room.append((member_id, quota))
        self.extras -= with_extra
        return share
