-- When was a member silent, and for how long?
--
-- One row per silence, in the order of time: no heartbeat, join or commit was accepted for `percent` of session.timeout.ms or longer, or
-- until the session ran out (`expired`). A healthy member stays below 40. A commit does not count in the consumer protocol, where it keeps
-- no session alive. Who was silent for longer than its session and still is a member did not survive that: its session began anew, at
-- another coordinator or after a restart, or lines are missing; `expired` is empty. Where no line shows the session timeout, it is taken
-- for 45 s, Kafka's default. Needs kafka-request.log.
--
-- :cluster       only this cluster
-- :group         only this consumer group
-- :client        only this client.id
-- :member        only members whose id contains this
-- :since         silences that ended from this time on
-- :until         silences that began up to this time
-- :percent = 40  of session.timeout.ms at least
-- :session       only silences that the session survived, or those after which it had expired: survived or expired
-- :limit = 100   rows at most

WITH requests AS (
  SELECT
    e.cluster, e.group_id, coalesce(nullif(e.answer_member_id, ''), e.member_id) AS member_id, e.kind, e.received_at,
    CASE WHEN e.kind IN ('JOIN_GROUP', 'SYNC_GROUP') THEN e.occurred_at ELSE coalesce(e.last_at, e.received_at) END AS last_at,
    e.longest_gap_ms, e.beats
  FROM group_events AS e
  WHERE e.kind IN ('HEARTBEAT', 'CONSUMER_GROUP_HEARTBEAT', 'JOIN_GROUP', 'SYNC_GROUP', 'OFFSET_COMMIT')
    AND e.error_code IN (0, 27)
    AND e.group_id <> ''
    AND (:cluster IS NULL OR e.cluster = :cluster)
    AND (:group IS NULL OR e.group_id = :group)
),
-- A row has many heartbeats. Few rows have a long gap in them, and only there each heartbeat counts.
beats AS (
  SELECT
    r.cluster, r.group_id, r.member_id, r.received_at, r.longest_gap_ms, unix_millis(r.received_at) AS received_ms,
    explode(r.beats) AS beat
  FROM requests AS r
  LEFT JOIN arrivals AS a ON a.cluster = r.cluster AND a.group_id = r.group_id AND a.member_id = r.member_id
  WHERE 100 * r.longest_gap_ms >= :percent * coalesce(a.session_timeout_ms, 45000)
),
within AS (
  SELECT
    b.cluster, b.group_id, b.member_id, b.longest_gap_ms, b.received_ms + b.beat AS until_ms,
    lag(b.received_ms + b.beat) OVER (
      PARTITION BY b.cluster, b.group_id, b.member_id, b.received_at, b.longest_gap_ms ORDER BY b.beat
    ) AS from_ms
  FROM beats AS b
),
of_consumer_protocol AS (
  SELECT DISTINCT r.cluster, r.group_id, r.member_id
  FROM requests AS r
  WHERE r.kind = 'CONSUMER_GROUP_HEARTBEAT'
),
signs AS (
  SELECT r.cluster, r.group_id, r.member_id, unix_millis(r.received_at) AS from_ms, unix_millis(r.last_at) AS until_ms, 0 AS is_end
  FROM requests AS r
  LEFT JOIN of_consumer_protocol AS c ON c.cluster = r.cluster AND c.group_id = r.group_id AND c.member_id = r.member_id
  WHERE c.member_id IS NULL OR r.kind <> 'OFFSET_COMMIT'
  UNION ALL
  SELECT s.cluster, s.group_id, s.member_id, unix_millis(s.ended_at), unix_millis(s.ended_at), 1
  FROM member_sessions AS s
  WHERE s.end_kind = 'SESSION_TIMEOUT'
    AND (:cluster IS NULL OR s.cluster = :cluster)
    AND (:group IS NULL OR s.group_id = :group)
),
between_rows AS (
  SELECT
    s.cluster, s.group_id, s.member_id, s.from_ms, s.is_end,
    max(s.until_ms) OVER (
      PARTITION BY s.cluster, s.group_id, s.member_id ORDER BY s.from_ms, s.until_ms, s.is_end
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS heard_ms,
    max(s.is_end) OVER (
      PARTITION BY s.cluster, s.group_id, s.member_id ORDER BY s.from_ms, s.until_ms, s.is_end
      ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING
    ) AS after_end
  FROM signs AS s
),
gaps AS (
  SELECT b.cluster, b.group_id, b.member_id, b.heard_ms, b.from_ms AS until_ms, b.is_end
  FROM between_rows AS b
  WHERE coalesce(b.after_end, 0) = 0 AND b.heard_ms IS NOT NULL
  UNION ALL
  SELECT w.cluster, w.group_id, w.member_id, w.from_ms, w.until_ms, 0
  FROM within AS w
  WHERE w.until_ms - w.from_ms <= w.longest_gap_ms
),
known AS (
  SELECT
    g.cluster, g.group_id, a.client_id, a.client_host, g.member_id, g.heard_ms, g.until_ms, g.until_ms - g.heard_ms AS silent_ms,
    a.session_timeout_ms,
    CASE WHEN g.is_end = 1 THEN TRUE WHEN g.until_ms - g.heard_ms < coalesce(a.session_timeout_ms, 45000) THEN FALSE END AS expired
  FROM gaps AS g
  LEFT JOIN arrivals AS a ON a.cluster = g.cluster AND a.group_id = g.group_id AND a.member_id = g.member_id
  WHERE g.is_end = 1 OR 100 * (g.until_ms - g.heard_ms) >= :percent * coalesce(a.session_timeout_ms, 45000)
)
SELECT
  k.cluster,
  k.group_id,
  k.client_id,
  k.client_host,
  k.member_id,
  timestamp_millis(k.heard_ms) AS silent_from,
  timestamp_millis(k.until_ms) AS silent_until,
  k.silent_ms,
  k.session_timeout_ms,
  CASE
    WHEN k.expired AND k.session_timeout_ms IS NULL THEN 100
    ELSE CAST(floor(100 * CAST(k.silent_ms AS DOUBLE) / coalesce(k.session_timeout_ms, 45000)) AS INT)
  END AS used_percent,
  k.expired
FROM known AS k
WHERE (:client IS NULL OR k.client_id = :client)
  AND (:member IS NULL OR position(:member IN k.member_id) > 0)
  AND (:session IS NULL OR k.expired = (:session = 'expired'))
  AND timestamp_millis(k.until_ms) >= :since
  AND timestamp_millis(k.heard_ms) <= :until
ORDER BY k.heard_ms, k.until_ms, k.cluster, k.group_id, k.member_id
LIMIT :limit
