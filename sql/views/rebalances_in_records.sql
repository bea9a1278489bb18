-- Rebalances with what they cost in records.
SELECT
  r.*,
  o.partitions_stopped,
  o.partitions_unread,
  o.unread_ms,
  o.lag_added,
  o.catch_up_ms,
  o.reread_min,
  o.reread_max,
  o.gaps
FROM rebalances_with_culprit AS r
JOIN rebalance_records AS o
  ON o.cluster = r.cluster AND o.group_id = r.group_id AND o.started_at = r.started_at AND o.ended_at = r.ended_at
