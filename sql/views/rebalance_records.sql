-- What each rebalance that partitions stopped with cost in records: the sums of `rebalance_offsets`. `lag_added` and `catch_up_ms` take the
-- ends of logs, which `rebalance poll` writes; both are null if one of the partitions lacks it. `catch_up_ms`: from the start of the rebalance
-- until the lag of its last partition was what it had been. `reread_max` is null if that of a partition which was read again is not known.
-- `partitions_unread`: not read again within ten minutes, or before the next rebalance.
SELECT
  p.cluster, p.group_id, p.started_at, p.ended_at,
  count(*) AS partitions_stopped,
  CAST(sum(CASE WHEN p.resumed_at IS NULL THEN 1 ELSE 0 END) AS BIGINT) AS partitions_unread,
  max(p.unread_ms) AS unread_ms,
  CASE WHEN count(p.lag_added) = count(*) THEN CAST(sum(p.lag_added) AS BIGINT) END AS lag_added,
  CASE WHEN count(p.caught_up_at) = count(*) THEN unix_millis(max(p.caught_up_at)) - unix_millis(p.started_at) END AS catch_up_ms,
  CAST(sum(p.reread_min) AS BIGINT) AS reread_min,
  CASE WHEN count(p.reread_max) = count(p.resumed_at) THEN CAST(sum(p.reread_max) AS BIGINT) END AS reread_max,
  bool_or(p.gaps) AS gaps
FROM rebalance_offsets AS p
GROUP BY p.cluster, p.group_id, p.started_at, p.ended_at
