-- Did a group's coordinator move, and how did that affect the group?
--
-- One row per move of a group to another broker, the newest first. `silent_ms` is how long no broker served the group: from the last
-- request that was served to the next one; where no request is logged, from when the old coordinator gave up the group to the move; null
-- where no line shows it. `refused` counts requests in that time and just after it that were answered COORDINATOR_LOAD_IN_PROGRESS,
-- COORDINATOR_NOT_AVAILABLE or NOT_COORDINATOR (14, 15, 16); null without a request log. `rebalances` counts those that began within a
-- minute and are blamed on the move. A move alone needs no rebalance: members keep their ids. `away_at` is when the first line within a
-- minute before the move said that the former broker went away, `away_by` which line. `clean` says whether the broker was shut down
-- cleanly, `back_at` when it was back. These are null where no line says so.
--
-- :cluster :group :since :until :limit = 20

WITH served AS (
  SELECT
    e.cluster, e.group_id, e.broker, e.received_at, e.occurred_at, greatest(e.occurred_at, coalesce(e.last_at, e.occurred_at)) AS until,
    e.source, e.position
  FROM group_events AS e
  WHERE e.group_id <> ''
    AND in_scope(e)
    AND e.occurred_at <= :until
    AND (
      (e.source = 'coordinator' AND e.kind NOT IN ('GROUP_UNLOADED', 'MEMBER_LOADED') AND coalesce(e.state, '') <> 'GIVEN_UP')
      OR (
        e.kind IN ('JOIN_GROUP', 'SYNC_GROUP', 'HEARTBEAT', 'LEAVE_GROUP', 'OFFSET_COMMIT', 'CONSUMER_GROUP_HEARTBEAT')
        AND e.error_code NOT IN (7, 14, 15, 16)
      )
    )
),
followed AS (
  SELECT
    s.*,
    lag(s.broker) OVER (PARTITION BY s.cluster, s.group_id ORDER BY s.occurred_at, s.source, s.broker, s.position) AS from_broker,
    lag(s.occurred_at) OVER (PARTITION BY s.cluster, s.group_id ORDER BY s.occurred_at, s.source, s.broker, s.position) AS last_at,
    max(CASE WHEN s.source = 'request' THEN s.until END) OVER (
      PARTITION BY s.cluster, s.group_id ORDER BY s.occurred_at, s.source, s.broker, s.position
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS served_until,
    min(CASE WHEN s.source = 'request' THEN s.occurred_at END) OVER (
      PARTITION BY s.cluster, s.group_id ORDER BY s.occurred_at, s.source, s.broker, s.position
      ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
    ) AS served_from
  FROM served AS s
),
moves AS (
  SELECT
    f.cluster, f.group_id, f.from_broker, f.broker AS to_broker, f.last_at,
    CASE WHEN f.served_until IS NOT NULL THEN least(f.served_until, f.occurred_at) END AS served_until,
    f.served_from, f.occurred_at AS moved_at
  FROM followed AS f
  WHERE f.broker <> f.from_broker AND f.occurred_at >= :since
),
given_up AS (
  SELECT m.cluster, m.group_id, m.moved_at, max(e.occurred_at) AS given_up_at
  FROM moves AS m
  JOIN group_events AS e
    ON e.cluster = m.cluster AND e.group_id = m.group_id AND e.broker = m.from_broker
    AND e.occurred_at >= m.last_at AND e.occurred_at <= m.moved_at
  WHERE e.kind = 'GROUP_UNLOADED' OR (e.kind = 'CONSUMER_GROUP_LOG' AND e.state = 'GIVEN_UP')
  GROUP BY m.cluster, m.group_id, m.moved_at
),
refusals AS (
  SELECT m.cluster, m.group_id, m.moved_at, CAST(sum(e.lines) AS BIGINT) AS refused
  FROM moves AS m
  JOIN group_events AS e
    ON e.cluster = m.cluster AND e.group_id = m.group_id
    AND e.occurred_at >= m.last_at AND e.occurred_at <= m.moved_at + INTERVAL 10 SECONDS
  WHERE e.error_code IN (14, 15, 16)
    AND e.kind <> 'FIND_COORDINATOR'
  GROUP BY m.cluster, m.group_id, m.moved_at
),
away AS (
  SELECT
    m.cluster, m.group_id, m.moved_at, d.occurred_at AS away_at, d.kind AS away_by, d.clean, d.stopped_at, d.started_at,
    row_number() OVER (PARTITION BY m.cluster, m.group_id, m.moved_at ORDER BY d.occurred_at, d.kind, d.origin, d.position) AS place
  FROM moves AS m
  JOIN broker_departures AS d ON d.cluster = m.cluster AND d.broker = m.from_broker
    AND d.occurred_at >= m.moved_at - INTERVAL 60 SECONDS AND d.occurred_at <= m.moved_at
    AND (d.started_at IS NULL OR d.started_at > m.moved_at)
),
after AS (
  SELECT
    m.cluster, m.group_id, m.moved_at,
    count(*) AS rebalances,
    known_sum(r.unavailable_partition_ms) AS unavailable_partition_ms,
    at_least(r.unavailable_partition_ms) AS at_least,
    min_by(r.id, r.started_at) AS first_id
  FROM moves AS m
  JOIN rebalances_with_culprit AS r
    ON r.cluster = m.cluster AND r.group_id = m.group_id AND r.blamed = 'COORDINATOR_MOVED'
      AND r.ended_at >= m.last_at AND r.started_at <= m.moved_at + INTERVAL 60 SECONDS
  GROUP BY m.cluster, m.group_id, m.moved_at
)
SELECT
  m.cluster,
  m.group_id,
  m.moved_at,
  m.from_broker,
  m.to_broker,
  w.away_at,
  w.away_by,
  coalesce(w.clean, w.stopped_at IS NOT NULL OR NULL) AS clean,
  w.started_at AS back_at,
  CASE
    WHEN m.served_until IS NOT NULL THEN unix_millis(m.served_from) - unix_millis(m.served_until)
    ELSE unix_millis(m.moved_at) - unix_millis(u.given_up_at)
  END AS silent_ms,
  CASE WHEN m.served_until IS NOT NULL THEN coalesce(x.refused, 0) ELSE x.refused END AS refused,
  coalesce(a.rebalances, 0) AS rebalances,
  a.unavailable_partition_ms,
  a.at_least,
  a.first_id
FROM moves AS m
LEFT JOIN given_up AS u ON u.cluster = m.cluster AND u.group_id = m.group_id AND u.moved_at = m.moved_at
LEFT JOIN away AS w ON w.cluster = m.cluster AND w.group_id = m.group_id AND w.moved_at = m.moved_at AND w.place = 1
LEFT JOIN refusals AS x ON x.cluster = m.cluster AND x.group_id = m.group_id AND x.moved_at = m.moved_at
LEFT JOIN after AS a ON a.cluster = m.cluster AND a.group_id = m.group_id AND a.moved_at = m.moved_at
ORDER BY m.moved_at DESC, m.cluster, m.group_id
LIMIT :limit
