-- Which groups read most records twice?
--
-- One row per group; the one that read most records twice comes first. After all its rebalances together it read `reread_min` to
-- `reread_max` records again, without the `unknown` rebalances of which no line shows the most. `for_each` is the most that one rebalance
-- cost. `longest_unread_ms` is the longest time that nobody read a partition. To read fewer records twice, commit more often
-- (auto.commit.interval.ms, a commit in onPartitionsRevoked), and let partitions stay where they are (static membership, the cooperative
-- assignor).
--
-- :cluster :since :until :limit = 20

SELECT
  r.cluster,
  r.group_id,
  count(*) AS rebalances,
  CAST(sum(r.partitions_stopped) AS BIGINT) AS partitions_stopped,
  CAST(coalesce(sum(r.reread_min) FILTER (WHERE r.reread_max IS NOT NULL), sum(r.reread_min)) AS BIGINT) AS reread_min,
  known_sum(r.reread_max) AS reread_max,
  max(r.reread_max) AS for_each,
  count(*) - count(r.reread_max) AS unknown,
  known_sum(r.lag_added) AS lag_added,
  at_least(r.reread_max, r.lag_added) AS at_least,
  max(r.unread_ms) AS longest_unread_ms,
  max(r.started_at) AS last_at
FROM rebalances_in_records AS r
WHERE (:cluster IS NULL OR r.cluster = :cluster)
  AND r.started_at >= :since
  AND r.started_at <= :until
GROUP BY r.cluster, r.group_id
ORDER BY reread_max DESC NULLS LAST, partitions_stopped DESC, r.cluster, r.group_id
LIMIT :limit
