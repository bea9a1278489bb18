-- How healthy are the heartbeats: who comes close to losing its session?
--
-- One row per member, the one closest to a timeout first. `longest_gap_ms` is the longest time between two signs of life
-- (heartbeats, joins, commits) to one broker that the session lived through. `used_percent` is its share of
-- session.timeout.ms: at 100 the session ends, or began anew meanwhile, as `silences` shows; a healthy member stays below 40.
-- `refused` counts heartbeats that were answered with an error other than REBALANCE_IN_PROGRESS. A series of regular
-- heartbeats is counted whole if it began by `until`. Needs kafka-request.log.
--
-- :cluster     only this cluster
-- :group       only this consumer group
-- :client      only this client.id
-- :member      only members whose id contains this
-- :since       from this time on
-- :until       up to this time
-- :limit = 20  rows at most

WITH signs AS (
  SELECT
    e.cluster, e.group_id, e.client_id, e.client_host, e.kind, e.error_code, e.broker, e.position,
    coalesce(nullif(e.answer_member_id, ''), e.member_id) AS member_id,
    e.received_at,
    CASE WHEN e.kind IN ('JOIN_GROUP', 'SYNC_GROUP') THEN e.occurred_at ELSE coalesce(e.last_at, e.received_at) END AS last_at,
    e.longest_gap_ms,
    e.beat_count,
    e.session_timeout_ms,
    e.lines
  FROM group_events AS e
  WHERE e.kind IN ('HEARTBEAT', 'JOIN_GROUP', 'SYNC_GROUP', 'OFFSET_COMMIT')
    AND e.group_id <> ''
    AND (:cluster IS NULL OR e.cluster = :cluster)
    AND (:group IS NULL OR e.group_id = :group)
    AND (:client IS NULL OR e.client_id = :client)
    AND e.received_at >= :since
    AND e.received_at <= :until
),
counted AS (
  SELECT
    s.*,
    CASE WHEN s.broker = lag(s.broker) OVER (
      PARTITION BY s.cluster, s.group_id, s.member_id ORDER BY s.received_at, s.last_at, s.broker, s.position
    ) THEN 0 ELSE 1 END AS moved
  FROM signs AS s
  WHERE s.member_id <> ''
    AND (s.error_code IN (0, 27) OR s.kind = 'HEARTBEAT')
    AND (:member IS NULL OR position(:member IN s.member_id) > 0)
),
stays AS (
  SELECT
    c.*,
    sum(c.moved) OVER (
      PARTITION BY c.cluster, c.group_id, c.member_id ORDER BY c.received_at, c.last_at, c.broker, c.position
      ROWS UNBOUNDED PRECEDING
    ) AS stay
  FROM counted AS c
),
gaps AS (
  SELECT
    s.*,
    max(s.session_timeout_ms) OVER (PARTITION BY s.cluster, s.group_id, s.member_id) AS limit_ms,
    greatest(
      coalesce(s.longest_gap_ms, 0),
      unix_millis(s.received_at) - unix_millis(max(s.last_at) OVER (
        PARTITION BY s.cluster, s.group_id, s.member_id, s.stay ORDER BY s.received_at, s.last_at, s.position
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ))
    ) AS gap_ms
  FROM stays AS s
),
members AS (
  SELECT
    g.cluster, g.group_id, g.member_id,
    max(g.client_id) AS client_id,
    max(g.client_host) AS client_host,
    CAST(sum(CASE WHEN g.kind = 'HEARTBEAT' THEN coalesce(g.beat_count, g.lines) ELSE 0 END) AS BIGINT) AS heartbeats,
    CAST(floor(
      sum(CASE WHEN g.beat_count > 1 THEN unix_millis(g.last_at) - unix_millis(g.received_at) END)
      / nullif(sum(CASE WHEN g.beat_count > 1 THEN g.beat_count - 1 END), 0)
    ) AS BIGINT) AS interval_ms,
    max(CASE WHEN g.error_code IN (0, 27) AND g.gap_ms < coalesce(g.limit_ms, g.gap_ms + 1) THEN g.gap_ms END) AS longest_gap_ms,
    max(g.session_timeout_ms) AS session_timeout_ms,
    CAST(sum(CASE WHEN g.kind = 'HEARTBEAT' AND g.error_code NOT IN (0, 27) THEN g.lines ELSE 0 END) AS BIGINT) AS refused,
    max(g.last_at) AS last_at
  FROM gaps AS g
  GROUP BY g.cluster, g.group_id, g.member_id
)
SELECT
  m.cluster,
  m.group_id,
  m.client_id,
  m.client_host,
  m.member_id,
  m.heartbeats,
  m.interval_ms,
  m.longest_gap_ms,
  m.session_timeout_ms,
  CAST(floor(100 * CAST(m.longest_gap_ms AS DOUBLE) / m.session_timeout_ms) AS INT) AS used_percent,
  m.refused,
  m.last_at
FROM members AS m
WHERE m.heartbeats > 0
ORDER BY used_percent DESC NULLS LAST, m.longest_gap_ms DESC NULLS LAST, m.cluster, m.group_id, m.member_id
LIMIT :limit
