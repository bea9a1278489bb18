-- What did my deployments and restarts cost?
--
-- One row per wave of restarts in a group, rolling ones first, then the newest. ROLLING: a finding ROLLING_RESTART, with its figures; or
-- two clients or more left and came back under new member ids, each within `gap_ms` of the one before. TOGETHER: all of them were away at
-- once. ONE_CLIENT: one client, twice or more. UNCLEAN: at least half of them were removed when their session ran out, and came only later,
-- as after a crash: no line shows that somebody restarted them. A client whose old member id was used again later had only paused, and does
-- not count. Storms are no deployments, nor are restarts after a broker was lost: see `storms` and `incidents`. `clean` members left by
-- themselves, or came back as the same static member. `expired` members were removed when their session ran out. `rebalances` counts those
-- that began in the wave, without start-ups. Consumers of Connect's sink tasks are left out: workers start and stop them whenever they
-- distribute tasks.
--
-- :cluster :group :since :until
-- :gap_ms = 60000  longest pause within a wave, ms
-- :limit = 20

WITH refused AS (
  SELECT e.cluster, e.group_id, e.member_id, max(e.received_at) AS last_at
  FROM group_events AS e
  WHERE e.source = 'request' AND e.member_id <> '' AND e.error_code IN (22, 25, 82, 110)
    AND in_scope(e)
  GROUP BY e.cluster, e.group_id, e.member_id
),
away AS (
  SELECT e.cluster, e.group_id, e.member_id, max(e.received_at) AS left_at
  FROM group_events AS e
  WHERE e.state = 'AWAY' OR e.generation = -2
  GROUP BY e.cluster, e.group_id, e.member_id
),
ends AS (
  SELECT s.cluster, s.group_id, s.client_id, s.member_id, s.end_kind, s.ended_at,
    coalesce(w.left_at, timestamp_millis(
      unix_millis(s.ended_at) - CASE s.end_kind WHEN 'SESSION_TIMEOUT' THEN coalesce(s.session_timeout_ms, 0) ELSE 0 END
    )) AS gone_at
  FROM member_sessions AS s
  LEFT JOIN away AS w
    ON w.cluster = s.cluster AND w.group_id = s.group_id AND w.member_id = s.member_id AND s.end_kind = 'REPLACED'
  LEFT JOIN refused AS p
    ON p.cluster = s.cluster AND p.group_id = s.group_id AND p.member_id = s.member_id AND p.last_at > s.ended_at
      AND s.end_kind = 'SESSION_TIMEOUT'
  WHERE s.end_kind IN ('LEFT', 'SESSION_TIMEOUT', 'REPLACED')
    AND p.member_id IS NULL
    AND s.client_id IS NOT NULL
    AND s.client_id NOT LIKE 'connector-consumer-%'
    AND in_scope(s.ended_at)
),
restarts AS (
  SELECT x.cluster, x.group_id, x.client_id, x.member_id, x.end_kind, x.gone_at, x.ended_at, min(a.came_at) AS back_at
  FROM ends AS x
  JOIN arrivals AS a
    ON a.cluster = x.cluster AND a.group_id = x.group_id AND a.client_id = x.client_id AND a.member_id <> x.member_id
      AND a.came_at >= x.gone_at - INTERVAL 1 SECOND AND unix_millis(a.came_at) <= unix_millis(x.ended_at) + :gap_ms
  GROUP BY x.cluster, x.group_id, x.client_id, x.member_id, x.end_kind, x.gone_at, x.ended_at
),
moves AS (
  SELECT f.cluster, f.group_id, f.occurred_at
  FROM findings AS f
  WHERE f.code = 'COORDINATOR_MOVED'
  UNION
  SELECT e.cluster, e.group_id, e.occurred_at
  FROM group_events AS e
  WHERE e.kind = 'GROUP_LOADED' OR (e.kind = 'CONSUMER_GROUP_LOG' AND e.state = 'READ_BACK')
),
spaced AS (
  SELECT
    r.*,
    CASE
      WHEN unix_millis(r.gone_at) - unix_millis(lag(r.back_at) OVER (
        PARTITION BY r.cluster, r.group_id ORDER BY r.gone_at, r.back_at, r.member_id
      )) <= :gap_ms THEN 0
      ELSE 1
    END AS first
  FROM restarts AS r
),
numbered AS (
  SELECT
    s.*,
    sum(s.first) OVER (
      PARTITION BY s.cluster, s.group_id ORDER BY s.gone_at, s.back_at, s.member_id ROWS UNBOUNDED PRECEDING
    ) AS wave
  FROM spaced AS s
),
waves AS (
  SELECT
    n.cluster, n.group_id, n.wave,
    min(n.gone_at) AS started_at,
    max(n.back_at) AS ended_at,
    count(DISTINCT n.client_id) AS clients,
    count(*) AS restarts,
    count(*) FILTER (WHERE n.end_kind <> 'SESSION_TIMEOUT') AS clean,
    count(*) FILTER (WHERE n.end_kind = 'SESSION_TIMEOUT') AS expired,
    count(*) FILTER (WHERE n.end_kind = 'SESSION_TIMEOUT' AND n.back_at > n.ended_at) AS late,
    max(n.gone_at) <= min(n.back_at) AS together,
    count(*) FILTER (WHERE n.end_kind <> 'LEFT' AND EXISTS (
      SELECT 1 FROM moves AS m
      WHERE m.cluster = n.cluster AND m.group_id = n.group_id
        AND m.occurred_at <= n.back_at + INTERVAL 10 SECONDS AND m.occurred_at > n.gone_at - INTERVAL 30 SECONDS
    )) AS moved
  FROM numbered AS n
  GROUP BY n.cluster, n.group_id, n.wave
  HAVING count(*) >= 2
),
told AS (
  SELECT
    f.cluster, f.group_id, f.started_at, f.last_at AS ended_at, 'ROLLING' AS verdict,
    count(DISTINCT x.client_id) AS clients,
    count(x.member_id) AS restarts,
    count(x.member_id) FILTER (WHERE x.end_kind <> 'SESSION_TIMEOUT') AS clean,
    count(x.member_id) FILTER (WHERE x.end_kind = 'SESSION_TIMEOUT') AS expired,
    f.rebalances, f.total_ms, f.unavailable_partition_ms, f.at_least
  FROM bursts AS f
  LEFT JOIN member_sessions AS x ON x.cluster = f.cluster AND x.group_id = f.group_id AND position(x.member_id IN f.restarted) > 0
  WHERE f.code = 'ROLLING_RESTART'
    AND in_scope(f.started_at)
  GROUP BY f.id, f.cluster, f.group_id, f.started_at, f.last_at, f.rebalances, f.total_ms, f.unavailable_partition_ms, f.at_least
),
others AS (
  SELECT
    w.cluster, w.group_id, w.started_at, w.ended_at,
    CASE WHEN w.clients = 1 THEN 'ONE_CLIENT' WHEN w.together THEN 'TOGETHER' WHEN w.late * 2 >= w.restarts THEN 'UNCLEAN'
      ELSE 'ROLLING' END AS verdict,
    w.clients, w.restarts, w.clean, w.expired,
    count(r.started_at) AS rebalances,
    CASE WHEN count(r.started_at) = 0 THEN 0 ELSE known_sum(r.total_ms) END AS total_ms,
    CASE WHEN count(r.started_at) = 0 THEN 0 ELSE known_sum(r.unavailable_partition_ms) END AS unavailable_partition_ms,
    at_least(r.total_ms, r.unavailable_partition_ms) AS at_least
  FROM waves AS w
  LEFT JOIN rebalances_with_id AS r
    ON r.cluster = w.cluster AND r.group_id = w.group_id AND NOT r.from_empty
      AND r.started_at >= w.started_at AND r.started_at <= w.ended_at + INTERVAL 1 SECOND
  WHERE w.moved * 2 <= w.restarts
    AND NOT EXISTS (
      SELECT 1 FROM bursts AS f
      WHERE f.cluster = w.cluster AND f.group_id = w.group_id AND f.started_at <= w.ended_at AND f.last_at >= w.started_at
    )
  GROUP BY w.cluster, w.group_id, w.started_at, w.ended_at, w.clients, w.restarts, w.clean, w.expired, w.late, w.together
)
SELECT
  d.cluster, d.group_id, d.verdict, d.started_at, d.ended_at, d.clients, d.restarts, d.clean, d.expired, d.rebalances, d.total_ms,
  d.unavailable_partition_ms, d.at_least
FROM (
  SELECT t.* FROM told AS t
  UNION ALL
  SELECT o.* FROM others AS o
) AS d
ORDER BY CASE d.verdict WHEN 'ROLLING' THEN 0 ELSE 1 END, d.started_at DESC, d.cluster, d.group_id
LIMIT :limit
