-- In groups with epochs (consumer, share, Streams), who was fenced, who is slow, and what was migrated?
--
-- One row per group and member, fenced members first, then the newest. `fenced` counts the coordinator's log lines about that,
-- `last_reason` quotes the last one. `refused` counts answers with error 22, 25, 110, 111 or 113 (wrong epoch, removed member, instance id
-- in use). `joins` and `leaves` are the member's own. `heartbeats` are null in share and Streams groups: not all are read. A row without a
-- member is about the whole group: the `epochs` that it went through, and CONVERTED with the protocol that it changed to last.
--
-- :cluster :group :member :since :until :limit = 20

WITH lines AS (
  SELECT
    e.cluster, e.group_id, nullif(e.member_id, '') AS member_id, nullif(e.client_id, '') AS client_id,
    nullif(e.instance_id, '') AS instance_id, e.kind, e.error_code, e.generation, e.occurred_at, e.reason, e.state,
    greatest(e.occurred_at, coalesce(e.last_at, e.occurred_at)) AS last_at, coalesce(e.beat_count, 1) AS beats
  FROM group_events AS e
  WHERE e.kind IN (
    'CONSUMER_GROUP_HEARTBEAT', 'SHARE_GROUP_HEARTBEAT', 'STREAMS_GROUP_HEARTBEAT', 'CONSUMER_GROUP_LOG', 'GROUP_CONVERTED'
  )
    AND coalesce(e.error_code, 0) <> 35
    AND in_scope(e.occurred_at)
    AND (:member IS NULL OR position(:member IN e.member_id) > 0)
)
SELECT
  n.cluster,
  n.group_id,
  n.member_id,
  max(n.client_id) AS client_id,
  max(n.instance_id) AS instance_id,
  count(*) FILTER (WHERE n.kind = 'CONSUMER_GROUP_LOG' AND n.reason LIKE '%fenced from the group%') AS fenced,
  count(*) FILTER (WHERE n.error_code IN (22, 25, 110, 111, 113)) AS refused,
  count(*) FILTER (WHERE n.kind LIKE '%_HEARTBEAT' AND n.error_code = 0 AND n.generation = 0) AS joins,
  count(*) FILTER (WHERE n.kind LIKE '%_HEARTBEAT' AND n.error_code = 0 AND n.generation < 0) AS leaves,
  CASE WHEN count(*) FILTER (WHERE n.kind IN ('SHARE_GROUP_HEARTBEAT', 'STREAMS_GROUP_HEARTBEAT')) = 0
    THEN CAST(sum(CASE WHEN n.kind = 'CONSUMER_GROUP_HEARTBEAT' THEN n.beats ELSE 0 END) AS BIGINT) END AS heartbeats,
  nullif(count(DISTINCT CASE WHEN n.reason LIKE '%group epoch to%' THEN n.generation END), 0) AS epochs,
  max_by('CONVERTED to ' || n.state, n.occurred_at) FILTER (WHERE n.kind = 'GROUP_CONVERTED') AS migration,
  max(n.last_at) AS last_at,
  max_by(
    n.reason,
    CASE WHEN n.reason LIKE '%fenced from the group%' THEN 2000000000000000 ELSE 0 END + unix_millis(n.occurred_at)
  ) FILTER (WHERE n.reason IS NOT NULL AND n.member_id IS NOT NULL) AS last_reason
FROM lines AS n
WHERE n.group_id <> ''
GROUP BY n.cluster, n.group_id, n.member_id
ORDER BY fenced DESC, refused DESC, last_at DESC, n.cluster, n.group_id, n.member_id NULLS LAST
LIMIT :limit
