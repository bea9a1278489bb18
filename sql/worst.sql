-- Which groups are the worst today?
--
-- One row per group that rebalanced in the last 24 hours of the tables (or since `since`), the one that lost most first.
-- `unavailable_partition_ms` is the unowned partition time (sum): how long each partition had no owner, added up. It needs a request log.
-- `cause` cost most of it; where that is not known, most of the time of rebalances; else it is the most frequent. `errors` counts
-- findings of severity ERROR. Start-ups are left out: the first rebalance of a group that was new or empty is no problem, and
-- `first-join` shows it.
--
-- :cluster :since = 24h :until :limit = 10

WITH recent AS (
  SELECT r.cluster, r.group_id, r.blamed AS cause, r.total_ms, r.unavailable_partition_ms, r.started_at
  FROM rebalances_with_culprit AS r
  WHERE NOT r.startup
    AND (:cluster IS NULL OR r.cluster = :cluster)
    AND r.started_at >= :since
    AND r.started_at <= :until
),
by_cause AS (
  SELECT
    c.cluster, c.group_id, c.cause,
    row_number() OVER (
      PARTITION BY c.cluster, c.group_id
      ORDER BY costliest(c.unavailable_partition_ms, c.total_ms, c.cause)
    ) AS place
  FROM recent AS c
  GROUP BY c.cluster, c.group_id, c.cause
),
errors AS (
  SELECT f.cluster, f.group_id, count(*) AS errors
  FROM findings AS f
  WHERE f.severity = 'ERROR'
    AND f.occurred_at >= :since
    AND f.occurred_at <= :until
  GROUP BY f.cluster, f.group_id
),
summed AS (
  SELECT
    r.cluster, r.group_id,
    count(*) AS rebalances,
    known_sum(r.total_ms) AS total_ms,
    max(r.total_ms) AS longest_ms,
    known_sum(r.unavailable_partition_ms) AS unavailable_partition_ms,
    at_least(r.total_ms, r.unavailable_partition_ms) AS at_least,
    max(r.started_at) AS last_at
  FROM recent AS r
  GROUP BY r.cluster, r.group_id
)
SELECT
  s.cluster,
  s.group_id,
  s.rebalances,
  s.total_ms,
  s.longest_ms,
  s.unavailable_partition_ms,
  s.at_least,
  c.cause,
  coalesce(e.errors, 0) AS errors,
  s.last_at
FROM summed AS s
JOIN by_cause AS c ON c.cluster = s.cluster AND c.group_id = s.group_id AND c.place = 1
LEFT JOIN errors AS e ON e.cluster = s.cluster AND e.group_id = s.group_id
ORDER BY s.unavailable_partition_ms DESC NULLS LAST, coalesce(s.total_ms, 0) DESC, s.cluster, s.group_id
LIMIT :limit
