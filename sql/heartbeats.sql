-- How healthy are the heartbeats, and who comes close to losing its session?
--
-- One row per member, the one closest to a timeout first. `longest_gap_ms` is the longest time without a sign of life (heartbeat, join,
-- commit) that the session survived, from where it began or was renewed. `used_percent` is its share of session.timeout.ms. At 100 the
-- session ends, or began anew meanwhile, as `silences` shows; a healthy member stays below 40. `refused` counts heartbeats that were
-- answered with an error other than REBALANCE_IN_PROGRESS. A series of regular heartbeats counts whole if it began by `until`. Needs
-- kafka-request.log.
--
-- :cluster :group :client :member :since :until :limit = 20

WITH counted AS (
  SELECT s.*, max(s.session_timeout_ms) OVER (PARTITION BY s.cluster, s.group_id, s.member_id) AS limit_ms
  FROM signs_of_life AS s
  WHERE s.kind <> 'CONSUMER_GROUP_HEARTBEAT'
    AND s.member_id <> ''
    AND (s.accepted OR s.kind = 'HEARTBEAT')
    AND in_scope(s.received_at)
    AND (:client IS NULL OR s.client_id = :client)
    AND (:member IS NULL OR position(:member IN s.member_id) > 0)
),
-- Few rows have a long gap between their heartbeats, and only there each one counts: another sign may have come between.
signs AS (
  SELECT c.cluster, c.group_id, c.member_id, c.broker, c.position, c.received_at, c.last_at, c.longest_gap_ms, c.limit_ms
  FROM counted AS c
  WHERE c.accepted AND coalesce(100 * c.longest_gap_ms < 30 * c.limit_ms, TRUE)
  UNION ALL
  SELECT
    b.cluster, b.group_id, b.member_id, b.broker, b.position, timestamp_millis(unix_millis(b.received_at) + b.beat),
    timestamp_millis(unix_millis(b.received_at) + b.beat), 0, b.limit_ms
  FROM (SELECT c.*, explode(c.beats) AS beat FROM counted AS c WHERE c.accepted AND 100 * c.longest_gap_ms >= 30 * c.limit_ms) AS b
  UNION ALL
  SELECT m.cluster, m.group_id, m.member_id, l.broker, l.position, l.occurred_at, l.occurred_at, 0, m.limit_ms
  FROM (
    SELECT c.cluster, c.group_id, c.member_id, c.limit_ms, min(c.received_at) AS came_at
    FROM counted AS c
    GROUP BY c.cluster, c.group_id, c.member_id, c.limit_ms
  ) AS m
  JOIN group_events AS l
    ON l.cluster = m.cluster AND l.group_id = m.group_id AND l.kind = 'GROUP_LOADED' AND l.occurred_at > m.came_at
),
moved AS (
  SELECT
    s.*,
    CASE WHEN s.broker = lag(s.broker) OVER (
      PARTITION BY s.cluster, s.group_id, s.member_id ORDER BY s.received_at, s.last_at, s.broker, s.position
    ) THEN 0 ELSE 1 END AS moved
  FROM signs AS s
),
stays AS (
  SELECT
    c.*,
    sum(c.moved) OVER (
      PARTITION BY c.cluster, c.group_id, c.member_id ORDER BY c.received_at, c.last_at, c.broker, c.position
      ROWS UNBOUNDED PRECEDING
    ) AS stay
  FROM moved AS c
),
gaps AS (
  SELECT
    s.*,
    greatest(
      coalesce(s.longest_gap_ms, 0),
      unix_millis(s.received_at) - unix_millis(max(s.last_at) OVER (
        PARTITION BY s.cluster, s.group_id, s.member_id, s.stay ORDER BY s.received_at, s.last_at, s.position
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ))
    ) AS gap_ms
  FROM stays AS s
),
survived AS (
  SELECT g.cluster, g.group_id, g.member_id, max(g.gap_ms) AS longest_gap_ms
  FROM gaps AS g
  WHERE g.gap_ms < coalesce(g.limit_ms, g.gap_ms + 1)
  GROUP BY g.cluster, g.group_id, g.member_id
),
members AS (
  SELECT
    c.cluster, c.group_id, c.member_id,
    max(c.client_id) AS client_id,
    max(c.client_host) AS client_host,
    CAST(sum(CASE WHEN c.kind = 'HEARTBEAT' THEN coalesce(c.beat_count, c.lines) ELSE 0 END) AS BIGINT) AS heartbeats,
    CAST(floor(
      sum(CASE WHEN c.beat_count > 1 THEN unix_millis(c.last_at) - unix_millis(c.received_at) END)
      / nullif(sum(CASE WHEN c.beat_count > 1 THEN c.beat_count - 1 END), 0)
    ) AS BIGINT) AS interval_ms,
    max(c.session_timeout_ms) AS session_timeout_ms,
    CAST(sum(CASE WHEN c.kind = 'HEARTBEAT' AND c.error_code NOT IN (0, 27) THEN c.lines ELSE 0 END) AS BIGINT) AS refused,
    max(c.last_at) AS last_at
  FROM counted AS c
  GROUP BY c.cluster, c.group_id, c.member_id
)
SELECT
  m.cluster,
  m.group_id,
  m.client_id,
  m.client_host,
  m.member_id,
  m.heartbeats,
  m.interval_ms,
  g.longest_gap_ms,
  m.session_timeout_ms,
  CAST(floor(100 * CAST(g.longest_gap_ms AS DOUBLE) / m.session_timeout_ms) AS INT) AS used_percent,
  m.refused,
  m.last_at
FROM members AS m
LEFT JOIN survived AS g ON g.cluster = m.cluster AND g.group_id = m.group_id AND g.member_id = m.member_id
WHERE m.heartbeats > 0
ORDER BY used_percent DESC NULLS LAST, g.longest_gap_ms DESC NULLS LAST, m.cluster, m.group_id, m.member_id
LIMIT :limit
