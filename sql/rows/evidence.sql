-- What tells of each group, since when and up to when: heartbeats that were answered, or commits without membership, show one at work,
-- unless its coordinator gave it up since then. `waited_ms`: how long the slowest answer took of those that wait for no other member.
-- A group of which somebody only looked up offsets, as tools and readers without a group do, is none to judge.
SELECT x.cluster, x.group_id, count(*) FILTER (x.broker <> 'clients') AS told, min(x.occurred_at) AS first_at,
       max(x.occurred_at) AS last_at,
       max(coalesce(x.last_at, x.occurred_at)) FILTER (x.kind = 'SIMPLE_GROUP' OR (
           x.kind IN ('CONSUMER_GROUP_HEARTBEAT', 'HEARTBEAT') AND x.error_code = 0
       )) > coalesce(max(x.occurred_at) FILTER (x.kind = 'GROUP_UNLOADED' OR x.state = 'GIVEN_UP'), '-infinity') AS works,
       arg_max(x.broker, x.occurred_at) FILTER (
           x.source IN ('coordinator', 'request') AND x.kind NOT IN ('SHARE_FETCH', 'SHARE_ACKNOWLEDGE')
       ) AS coordinator,
       arg_max(x.state, (x.occurred_at, x.position)) FILTER (x.kind = 'GROUP_CONVERTED') AS converted,
       bool_and(x.kind = 'FIND_COORDINATOR') AS looked_up,
       max(epoch_ms(x.occurred_at) - epoch_ms(x.received_at)) FILTER (
           x.source = 'request' AND x.kind IN ('HEARTBEAT', 'CONSUMER_GROUP_HEARTBEAT', 'OFFSET_COMMIT')
       ) AS waited_ms
FROM group_events AS x
WHERE ($cluster IS NULL OR x.cluster = $cluster) AND x.occurred_at <= $until AND x.group_id <> '' AND ($group IS NULL OR x.group_id = $group)
      AND x.kind NOT IN ('OFFSETS_STORED', 'OFFSETS_POLLED')
GROUP BY ALL
HAVING NOT (bool_and(x.kind IN ('FIND_COORDINATOR', 'OFFSET_FETCH')) AND bool_or(x.kind = 'OFFSET_FETCH')
            AND NOT bool_or(x.kind = 'OFFSET_FETCH' AND coalesce(x.error_code, 0) <> 0))
ORDER BY ALL
