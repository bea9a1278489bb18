-- Join, sync and leave requests with how long their answers took, and all that was refused.
SELECT x.source, x.broker, x.kind, coalesce(nullif(x.answer_member_id, ''), x.member_id) AS member_id, x.client_id, x.client_host,
       x.connection, x.received_at, x.occurred_at, x.generation, x.answer_generation, x.error_code, x.reason, x.origin, x.position
FROM group_events AS x
WHERE x.cluster = $cluster AND x.group_id = $group AND x.occurred_at >= $since AND x.received_at <= $until
  AND (x.kind IN ('JOIN_GROUP', 'SYNC_GROUP', 'LEAVE_GROUP', 'OFFSET_FETCH')
    OR x.kind IN ('HEARTBEAT', 'CONSUMER_GROUP_HEARTBEAT', 'OFFSET_COMMIT', 'TXN_OFFSET_COMMIT') AND x.error_code <> 0
    OR x.kind = 'CONSUMER_GROUP_HEARTBEAT' AND x.answer_generation <> x.generation)
ORDER BY x.received_at, x.occurred_at, x.origin, x.position LIMIT $limit
