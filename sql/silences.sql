-- When was a member silent, and for how long?
--
-- One row per silence, in the order of time: no heartbeat, join or commit was accepted for `percent` of session.timeout.ms or longer, or
-- until the session ran out (`expired`). A healthy member stays below 40. In the consumer protocol a commit keeps no session alive and
-- does not count, and `session_timeout_ms` is the shortest silence after which a broker removed a member of the group, or else of the
-- cluster. If nothing shows it, `used_percent` is empty, and `percent` is of 45 s, Kafka's default. `expired` is empty for a member that
-- was silent for longer than its session and still is a member: its session began anew, at another coordinator or after a restart, or
-- lines are missing. Needs kafka-request.log.
--
-- :cluster :group :client :member
-- :since         silences that ended from this time on
-- :until         silences that began up to this time
-- :percent = 40  at least this share of session.timeout.ms
-- :session       only silences that the session survived, or only those after which it expired: survived or expired
-- :limit = 100

WITH requests AS (
  SELECT
    e.cluster, e.group_id, e.member_id, e.kind, e.received_at, e.last_at, e.longest_gap_ms, e.beats,
    max(CASE WHEN e.kind IN ('HEARTBEAT', 'JOIN_GROUP', 'SYNC_GROUP') THEN 1 ELSE 0 END) OVER (
      PARTITION BY e.cluster, e.group_id, e.member_id
    ) AS is_classic
  FROM signs_of_life AS e
  WHERE e.accepted
    AND in_scope(e)
),
-- In the consumer protocol no line has the session timeout. The shortest silence shows it after which a member of the group was
-- removed, else one of the cluster: it is a setting of brokers. A session that a broker read back began then. One that was lost with a
-- broker shows nothing.
loads AS (
  SELECT e.cluster, e.group_id, e.occurred_at
  FROM group_events AS e
  WHERE e.kind = 'GROUP_LOADED' OR (e.kind = 'CONSUMER_GROUP_LOG' AND e.state = 'READ_BACK')
),
lasted AS (
  SELECT
    s.cluster, s.group_id, s.member_id, s.ended_at,
    unix_millis(s.ended_at) - greatest(unix_millis(max(h.last_at)), coalesce(unix_millis(max(l.occurred_at)), 0)) AS session_ms
  FROM member_sessions AS s
  JOIN signs_of_life AS h
    ON h.cluster = s.cluster AND h.group_id = s.group_id AND h.member_id = s.member_id AND h.kind = 'CONSUMER_GROUP_HEARTBEAT'
      AND h.accepted AND h.received_at <= s.ended_at
  LEFT JOIN loads AS l ON l.cluster = s.cluster AND l.group_id = s.group_id AND l.occurred_at <= s.ended_at
  WHERE s.end_kind = 'SESSION_TIMEOUT' AND s.session_timeout_ms IS NULL
    AND s.member_id NOT IN (SELECT b.member_id FROM lost_to_brokers AS b WHERE b.member_id IS NOT NULL)
  GROUP BY s.cluster, s.group_id, s.member_id, s.ended_at
),
of_cluster AS (
  SELECT l.cluster, min(l.session_ms) AS session_ms
  FROM lasted AS l
  GROUP BY l.cluster
),
of_group AS (
  SELECT l.cluster, l.group_id, min(l.session_ms) AS session_ms
  FROM lasted AS l
  GROUP BY l.cluster, l.group_id
),
members AS (
  SELECT
    m.cluster, m.group_id, m.member_id, a.client_id, a.client_host,
    coalesce(a.session_timeout_ms, CASE m.is_classic WHEN 0 THEN coalesce(g.session_ms, x.session_ms) END) AS session_timeout_ms
  FROM (SELECT DISTINCT r.cluster, r.group_id, r.member_id, r.is_classic FROM requests AS r) AS m
  LEFT JOIN arrivals AS a ON a.cluster = m.cluster AND a.group_id = m.group_id AND a.member_id = m.member_id
  LEFT JOIN of_group AS g ON g.cluster = m.cluster AND g.group_id = m.group_id
  LEFT JOIN of_cluster AS x ON x.cluster = m.cluster
),
judged AS (
  SELECT r.*, coalesce(100 * r.longest_gap_ms >= :percent * coalesce(m.session_timeout_ms, 45000), FALSE) AS has_silence
  FROM requests AS r
  JOIN members AS m ON m.cluster = r.cluster AND m.group_id = r.group_id AND m.member_id = r.member_id
  WHERE r.is_classic = 1 OR r.kind <> 'OFFSET_COMMIT'
),
-- A row has many heartbeats. Few rows have a long gap in them, and only there each heartbeat counts.
signs AS (
  SELECT r.cluster, r.group_id, r.member_id, unix_millis(r.received_at) AS from_ms, unix_millis(r.last_at) AS until_ms, 0 AS is_end
  FROM judged AS r
  WHERE NOT r.has_silence
  UNION ALL
  SELECT b.cluster, b.group_id, b.member_id, b.received_ms + b.beat, b.received_ms + b.beat, 0
  FROM (
    SELECT r.cluster, r.group_id, r.member_id, unix_millis(r.received_at) AS received_ms, explode(r.beats) AS beat
    FROM judged AS r
    WHERE r.has_silence
  ) AS b
  UNION ALL
  SELECT
    s.cluster, s.group_id, s.member_id, unix_millis(s.ended_at), unix_millis(s.ended_at),
    CASE s.end_kind WHEN 'SESSION_TIMEOUT' THEN 1 ELSE 2 END
  FROM member_sessions AS s
  WHERE in_scope(s)
),
gaps AS (
  SELECT
    s.cluster, s.group_id, s.member_id, s.from_ms AS until_ms, s.is_end,
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
known AS (
  SELECT
    g.cluster, g.group_id, m.client_id, m.client_host, g.member_id, g.heard_ms, g.until_ms, g.until_ms - g.heard_ms AS silent_ms,
    m.session_timeout_ms,
    CASE WHEN g.is_end = 1 THEN TRUE WHEN g.until_ms - g.heard_ms < m.session_timeout_ms THEN FALSE END AS expired
  FROM gaps AS g
  JOIN members AS m ON m.cluster = g.cluster AND m.group_id = g.group_id AND m.member_id = g.member_id
  WHERE coalesce(g.after_end, 0) = 0 AND g.is_end < 2
    AND (g.is_end = 1 OR 100 * (g.until_ms - g.heard_ms) >= :percent * coalesce(m.session_timeout_ms, 45000))
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
    ELSE CAST(floor(100 * CAST(k.silent_ms AS DOUBLE) / k.session_timeout_ms) AS INT)
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
