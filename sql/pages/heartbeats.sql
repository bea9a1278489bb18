-- Heartbeats that were answered without an error: a row for each run of them.
SELECT x.member_id, x.received_at AS first_at, coalesce(x.last_at, x.received_at) AS last_at, x.beat_count, x.beats
FROM group_events AS x
WHERE x.cluster = $cluster AND x.group_id = $group AND coalesce(x.last_at, x.received_at) >= $since AND x.received_at <= $until
  AND x.kind IN ('HEARTBEAT', 'CONSUMER_GROUP_HEARTBEAT') AND x.error_code = 0 AND x.member_id <> ''
ORDER BY x.received_at, x.origin, x.position LIMIT $limit
