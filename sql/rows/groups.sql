-- Groups that any line names, rebalanced or not, and the protocol that they follow by now, as `ask groups` tells it. A committed offset alone
-- shows no group of consumers: it may be that of a group of Streams.
SELECT cluster, group_id, CASE
    WHEN max(occurred_at) FILTER (WHERE kind LIKE 'CONSUMER_GROUP%' AND (kind <> 'CONSUMER_GROUP_HEARTBEAT' OR error_code = 0)) >
         coalesce(max(occurred_at) FILTER (WHERE kind IN ('STABILIZED', 'JOIN_GROUP', 'SYNC_GROUP', 'HEARTBEAT')), '-infinity')
    THEN coalesce(
        arg_max(protocol_type, occurred_at) FILTER (WHERE kind = 'CONSUMER_GROUP_LOG' AND protocol_type IN ('share', 'streams')), 'consumer'
    )
    ELSE 'classic'
END protocol
FROM group_events
WHERE group_id <> '' AND kind NOT IN ('OFFSETS_STORED', 'OFFSETS_POLLED') AND ($cluster IS NULL OR cluster = $cluster)
      AND ($group IS NULL OR group_id = $group) AND occurred_at <= $until
GROUP BY cluster, group_id
