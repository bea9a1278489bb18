-- Members that the coordinator removed while a rebalance ran: a row for each, with that rebalance. They did not join, synchronise or give
-- partitions up in time, were too many, or their session ended. The last of those that went by the end of the join phase is whom that waited
-- for, before the last member that joined again (`slowest_member_id`).
SELECT
  r.id, s.cluster, s.group_id, s.member_id, s.ended_at, s.ended_at <= coalesce(r.joined_at, r.ended_at) AS while_joining
FROM rebalances_with_id AS r
JOIN member_sessions AS s
  ON s.cluster = r.cluster AND s.group_id = r.group_id
    AND s.end_kind IN ('JOIN_TIMEOUT', 'SYNC_TIMEOUT', 'REBALANCE_TIMEOUT', 'GROUP_OVER_CAPACITY', 'SESSION_TIMEOUT')
    AND s.ended_at > r.started_at AND s.ended_at <= r.ended_at
