-- Rebalances of some groups: of each those that cost most.
SELECT x.cluster, x.group_id, x.id, x.started_at, x.ended_at, x.total_ms, x.startup, x.blamed, x.outcome, x.generation, x.reason,
       x.waits_for, x.unavailable_partition_ms, x.member_id, x.instance_id, x.culprit_broker, x.culprit_client_id,
       x.culprit_client_host, x.culprit_member_id
FROM rebalances_with_culprit AS x
WHERE list_contains($groups, x.group_id) AND x.started_at <= $until AND x.ended_at >= $since
QUALIFY row_number() OVER (
    PARTITION BY x.cluster, x.group_id
    ORDER BY x.startup, x.unavailable_partition_ms DESC NULLS LAST, x.total_ms DESC NULLS LAST, x.id) <= 100
ORDER BY x.started_at, x.id
