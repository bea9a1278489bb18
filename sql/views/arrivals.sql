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
FROM member_joins AS a
GROUP BY a.cluster, a.group_id, a.member_id
