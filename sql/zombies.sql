-- Who still sends requests for a past generation, or under an id that was removed?
--
-- One row per such member, the longest-lived first. `zombie_ms` is the time from its removal to its last refused request
-- (errors 22, 25, 82). In that time the process may have worked on partitions that others already owned. `commits`
-- counts the refused commits among `requests`. Needs kafka-request.log: the coordinator log has no line for these
-- refusals.
--
-- :cluster     only this cluster
-- :group       only this consumer group
-- :client      only this client.id
-- :member      only members whose id contains this
-- :since       from this time on
-- :until       up to this time
-- :limit = 20  rows at most

WITH refused AS (
  SELECT
    e.cluster, e.group_id, e.member_id,
    max(e.client_id) AS client_id,
    max(e.client_host) AS client_host,
    CAST(sum(e.lines) AS BIGINT) AS requests,
    CAST(coalesce(sum(CASE WHEN e.kind IN ('OFFSET_COMMIT', 'TXN_OFFSET_COMMIT') THEN e.lines END), 0) AS BIGINT) AS commits,
    array_join(array_sort(array_agg(DISTINCT e.kind)), ', ') AS requests_of,
    min(e.generation) AS sent_generation,
    min(e.occurred_at) AS first_at,
    max(e.occurred_at) AS last_at
  FROM group_events AS e
  WHERE e.kind IN ('HEARTBEAT', 'JOIN_GROUP', 'SYNC_GROUP', 'OFFSET_COMMIT', 'TXN_OFFSET_COMMIT', 'CONSUMER_GROUP_HEARTBEAT')
    AND e.error_code IN (22, 25, 82)
    AND e.member_id <> ''
    AND (:cluster IS NULL OR e.cluster = :cluster)
    AND (:group IS NULL OR e.group_id = :group)
    AND (:client IS NULL OR e.client_id = :client)
    AND (:member IS NULL OR position(:member IN e.member_id) > 0)
    AND e.occurred_at >= :since
    AND e.occurred_at <= :until
  GROUP BY e.cluster, e.group_id, e.member_id
),
removals AS (
  SELECT
    z.cluster, z.group_id, z.member_id, s.ended_at, s.end_kind, s.id,
    row_number() OVER (PARTITION BY z.cluster, z.group_id, z.member_id ORDER BY s.ended_at DESC, s.end_kind) AS place
  FROM refused AS z
  JOIN member_sessions_with_id AS s
    ON s.cluster = z.cluster AND s.group_id = z.group_id AND s.member_id = z.member_id AND s.ended_at <= z.last_at
)
SELECT
  z.cluster,
  z.group_id,
  z.client_id,
  z.client_host,
  z.member_id,
  r.end_kind AS removed_by,
  r.ended_at AS removed_at,
  z.last_at,
  unix_millis(z.last_at) - unix_millis(r.ended_at) AS zombie_ms,
  z.requests,
  z.commits,
  z.requests_of,
  r.id AS removed_id
FROM refused AS z
LEFT JOIN removals AS r ON r.cluster = z.cluster AND r.group_id = z.group_id AND r.member_id = z.member_id AND r.place = 1
ORDER BY zombie_ms DESC NULLS LAST, z.last_at DESC, z.cluster, z.group_id, z.member_id
LIMIT :limit
