-- Rebalances that have not ended: the last row that the tracker told of each. `ended_at` and `total_ms` say until when that is known, and so
-- how long it has lasted: up to the newest line of the broker that coordinates the group. `alarm` is for those who follow the table.
WITH told AS (
  SELECT
    p.*,
    row_number() OVER (PARTITION BY p.cluster, p.group_id ORDER BY p.batch_id DESC, p.at_end DESC, p.started_at DESC, p.outcome) AS place
  FROM rebalances_provisional AS p
  WHERE p.outcome IN ('OPEN', 'ENDED')
),
open AS (
  SELECT t.* FROM told AS t WHERE t.place = 1 AND t.outcome = 'OPEN'
),
brokers AS (
  SELECT DISTINCT o.cluster, o.broker FROM open AS o
),
read AS (
  SELECT b.cluster, b.broker, max(e.occurred_at) AS until
  FROM brokers AS b
  JOIN group_events AS e ON e.cluster = b.cluster AND e.broker = b.broker AND e.kind <> 'end'
  GROUP BY b.cluster, b.broker
),
timed AS (
  SELECT o.*, greatest(o.ended_at, coalesce(u.until, o.ended_at)) AS until
  FROM open AS o
  LEFT JOIN read AS u ON u.cluster = o.cluster AND u.broker = o.broker
)
SELECT
  o.waits_for, o.awaited, o.awaited_unnamed, o.limit_ms, o.broker, CAST(NULL AS STRING) AS alarm,
  o.cluster, o.group_id, o.generation, o.started_at, o.joined_at,
  o.until AS ended_at,
  o.join_ms, o.sync_ms,
  unix_millis(o.until) - unix_millis(o.started_at) AS total_ms,
  o.outcome, o.cause, o.reason, o.member_id, o.instance_id, o.client_id, o.client_host, o.members_before, o.members_after, o.joined, o.left,
  o.slowest_member_id, o.leader_id, o.protocol, o.partitions, o.partitions_moved, o.unavailable_partition_ms, o.evidence, o.batch_id,
  o.assignment_ms, o.first_fetch_ms, o.first_fetch_member_id, o.joined_unnamed, o.left_unnamed, o.start_seen, o.group_protocol,
  o.first_epoch, o.rounds, o.end_seen, o.interval_wait_ms, o.at_end
FROM timed AS o
