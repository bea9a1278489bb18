-- When did groups rebalance, why, and what did it cost?
--
-- One row per cause and `step` of time, in the order of time. `began_at` is the beginning of the step. A rebalance counts whole in the
-- step in which it began, under the cause that `rebalances` shows. `unavailable_partition_ms` is the unowned partition time (sum): how
-- long each partition had no owner, added up. It needs a request log.
--
-- :cluster :group :since = 24h :until
-- :step = 15m  the length of a step
-- :limit = 5000

WITH began AS (
  SELECT
    CAST(floor(unix_millis(r.started_at) / greatest(:step, 1)) AS BIGINT) AS place,
    r.blamed AS cause,
    r.cluster, r.group_id, r.total_ms, r.unavailable_partition_ms
  FROM rebalances_with_culprit AS r
  WHERE in_scope(r.started_at)
)
SELECT
  timestamp_millis(b.place * greatest(:step, 1)) AS began_at,
  b.cause,
  count(*) AS rebalances,
  count(DISTINCT b.cluster || '/' || b.group_id) AS groups,
  known_sum(b.total_ms) AS total_ms,
  known_sum(b.unavailable_partition_ms) AS unavailable_partition_ms,
  at_least(b.total_ms, b.unavailable_partition_ms) AS at_least
FROM began AS b
GROUP BY b.place, b.cause
ORDER BY b.place, b.cause
LIMIT :limit
