-- Whose session ran out, and was it a crash or a pause?
--
-- One row per expired session, the newest first. STALLED: a static member whose application did not poll, which does not leave, but falls
-- silent (POLL_TIMEOUT), or says that it is away for a while (epoch -2) and comes back in the same process. UNHEARD: the process ran. A
-- request of it waited for its answer when the session ended, or others came after the last one that was accepted, or that one came within
-- half of the session timeout, or the finding COORDINATOR_MOVED names the member. PAUSED: the same process appeared again, under its old
-- member id or on its old connection, so it had only paused (garbage collection, CPU limit, network). REJOINED: a new member with the same
-- client.id appeared (the process restarted, or connected again). GONE: none of these. `back_at` is when it appeared again, which may be
-- before its old session ran out. Only kafka-request.log shows most of UNHEARD and STALLED, and in a classic group PAUSED. Where no line
-- shows the session timeout, it is taken for 45 s, Kafka's default.
--
-- :cluster :group :client :since :until :limit = 20

WITH expired AS (
  SELECT s.*, timestamp_millis(unix_millis(s.ended_at) - coalesce(s.session_timeout_ms, 45000)) AS heard_at
  FROM member_sessions_with_id AS s
  WHERE (s.end_kind = 'SESSION_TIMEOUT' OR (s.end_kind = 'POLL_TIMEOUT' AND s.instance_id <> ''))
    AND in_scope(s.ended_at)
    AND (:client IS NULL OR s.client_id = :client)
),
connections AS (
  SELECT DISTINCT x.id, x.cluster, x.group_id, x.ended_at, e.broker, e.connection
  FROM expired AS x
  JOIN group_events AS e ON e.cluster = x.cluster AND e.group_id = x.group_id AND e.member_id = x.member_id
  WHERE e.source = 'request' AND e.connection <> '' AND e.received_at <= x.ended_at
),
requests AS (
  SELECT x.id, x.ended_at, e.received_at, e.occurred_at, e.last_at, e.error_code
  FROM expired AS x
  JOIN group_events AS e ON e.cluster = x.cluster AND e.group_id = x.group_id AND e.member_id = x.member_id
  WHERE e.source = 'request' AND e.received_at <= x.ended_at
  UNION ALL
  SELECT c.id, c.ended_at, e.received_at, e.occurred_at, e.last_at, e.error_code
  FROM connections AS c
  JOIN group_events AS e
    ON e.cluster = c.cluster AND e.group_id = c.group_id AND e.broker = c.broker AND e.connection = c.connection
      AND e.source = 'request' AND e.received_at <= c.ended_at
  WHERE e.kind = 'JOIN_GROUP' AND e.member_id = ''
),
taken AS (
  SELECT r.id, max(coalesce(r.last_at, r.received_at)) AS last_at
  FROM requests AS r
  WHERE r.error_code IN (0, 27)
  GROUP BY r.id
),
unheard AS (
  SELECT r.id
  FROM requests AS r
  JOIN taken AS t ON t.id = r.id
  WHERE r.occurred_at > r.ended_at OR (r.error_code NOT IN (0, 27) AND r.received_at > t.last_at)
  UNION
  SELECT x.id
  FROM expired AS x
  JOIN taken AS t ON t.id = x.id
  WHERE 2 * (unix_millis(x.ended_at) - unix_millis(t.last_at)) < x.session_timeout_ms
  UNION
  SELECT x.id
  FROM expired AS x
  JOIN lost_to_brokers AS f ON f.cluster = x.cluster AND f.group_id = x.group_id AND f.member_id = x.member_id
),
heard AS (
  SELECT x.id, e.received_at
  FROM expired AS x
  JOIN group_events AS e
    ON e.cluster = x.cluster AND e.group_id = x.group_id AND e.member_id = x.member_id
      AND e.received_at > x.ended_at
  WHERE (e.source = 'request' AND (e.error_code IN (22, 25, 82, 110) OR e.kind = 'CONSUMER_GROUP_HEARTBEAT'))
    OR (e.kind = 'CONSUMER_GROUP_LOG' AND e.state = 'JOINED')
  UNION ALL
  SELECT c.id, e.received_at
  FROM connections AS c
  JOIN group_events AS e
    ON e.cluster = c.cluster AND e.group_id = c.group_id AND e.broker = c.broker AND e.connection = c.connection
      AND e.source = 'request' AND e.received_at > c.ended_at
),
paused AS (
  SELECT h.id, min(h.received_at) AS back_at
  FROM heard AS h
  GROUP BY h.id
),
away AS (
  SELECT DISTINCT x.id
  FROM expired AS x
  JOIN group_events AS e
    ON e.cluster = x.cluster AND e.group_id = x.group_id AND e.member_id = x.member_id
      AND e.kind = 'CONSUMER_GROUP_HEARTBEAT' AND e.generation = -2 AND e.received_at BETWEEN x.heard_at AND x.ended_at
),
rejoined AS (
  SELECT x.id, min(a.came_at) AS back_at
  FROM expired AS x
  JOIN arrivals AS a
    ON a.cluster = x.cluster AND a.group_id = x.group_id AND a.client_id = x.client_id
      AND a.member_id <> x.member_id AND a.came_at > x.heard_at AND a.came_at > coalesce(x.joined_at, x.heard_at)
  GROUP BY x.id
)
SELECT
  x.cluster,
  x.group_id,
  x.ended_at,
  CASE
    WHEN x.end_kind = 'POLL_TIMEOUT' OR (w.id IS NOT NULL AND p.id IS NOT NULL) THEN 'STALLED'
    WHEN u.id IS NOT NULL THEN 'UNHEARD' WHEN p.id IS NOT NULL THEN 'PAUSED' WHEN r.id IS NOT NULL THEN 'REJOINED' ELSE 'GONE'
  END AS fate,
  x.client_id,
  x.client_host,
  x.member_id,
  x.session_timeout_ms,
  CASE WHEN u.id IS NULL AND p.back_at IS NOT NULL THEN p.back_at ELSE least(p.back_at, r.back_at) END AS back_at,
  x.id
FROM expired AS x
LEFT JOIN unheard AS u ON u.id = x.id
LEFT JOIN paused AS p ON p.id = x.id
LEFT JOIN away AS w ON w.id = x.id
LEFT JOIN rejoined AS r ON r.id = x.id
ORDER BY x.ended_at DESC, x.cluster, x.group_id, x.member_id
LIMIT :limit
