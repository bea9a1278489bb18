-- Members in the order in which they joined: one row per member id, with what is known about its client.
-- The coordinator log names no client. There it is the part of the member id before the UUID.
SELECT
  a.cluster,
  a.group_id,
  a.member_id,
  coalesce(
    max(a.client_id),
    nullif(regexp_extract(a.member_id, '^(.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$', 1), '')
  ) AS client_id,
  max(a.client_host) AS client_host,
  max(a.instance_id) AS instance_id,
  max(a.software) AS software,
  max(a.session_timeout_ms) AS session_timeout_ms,
  max(a.rebalance_timeout_ms) AS rebalance_timeout_ms,
  min(a.received_at) AS came_at
FROM (
  SELECT
    e.cluster, e.group_id, e.client_host, e.software, e.session_timeout_ms, e.rebalance_timeout_ms, e.received_at,
    nullif(e.instance_id, '') AS instance_id,
    nullif(e.client_id, '') AS client_id,
    coalesce(nullif(e.answer_member_id, ''), e.member_id) AS member_id
  FROM group_events AS e
  WHERE e.group_id <> ''
    AND (
      (e.kind = 'JOIN_GROUP' AND e.error_code = 0)
      OR (e.kind = 'CONSUMER_GROUP_HEARTBEAT' AND e.error_code = 0 AND e.generation = 0)
      OR e.kind = 'MEMBER_ADDED'
      OR (e.kind = 'CONSUMER_GROUP_LOG' AND e.state IN ('JOINED', 'RETURNED'))
    )
) AS a
WHERE a.member_id <> ''
GROUP BY a.cluster, a.group_id, a.member_id
