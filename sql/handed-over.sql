-- Which partitions did a rebalance hand over, and what did that cost?
--
-- One row per partition that stopped with a rebalance, in the order of time: what its owner committed last, who read on, when and from
-- which offset, and what that cost. `resumed_offset` is the answer to the request for the offset; -1: none was committed. `resumed_at` is
-- empty where nobody read the partition again within ten minutes, or before the next rebalance. Where `gaps` is true, lag and
-- `reread_max` count offsets, which are records at most.
--
-- :cluster :group
-- :since  rebalances from this time on
-- :until :limit = 100

SELECT
  o.cluster,
  o.group_id,
  o.started_at,
  o.partition,
  o.from_client_id,
  o.committed_at,
  o.committed_offset,
  o.to_client_id,
  o.resumed_at,
  o.resumed_offset,
  o.unread_ms,
  o.lag_before,
  o.lag_added,
  o.caught_up_at,
  o.reread_min,
  o.reread_max,
  o.gaps
FROM rebalance_offsets AS o
WHERE in_scope(o.started_at)
ORDER BY o.started_at, o.cluster, o.group_id, o.ended_at, o.partition
LIMIT :limit
