"""The partition of `__consumer_offsets` that holds a group. The leader of that partition is the group's coordinator."""

from __future__ import annotations

from coordinator_model.specification.hash_maps import string_hash


def coordinator_partition(group_id: str, num_partitions: int = 50) -> int:
    """`GroupMetadataManager.partitionFor`, `GroupCoordinatorService.partitionFor`.

    `Utils.abs(groupId.hashCode) % groupMetadataTopicPartitionCount`, where abs(-2^31) is 0: not the low 31 bits.
    """
    h = string_hash(group_id)
    if h & 0x80000000:
        h = -h
    return (h & 0x7FFFFFFF) % num_partitions
