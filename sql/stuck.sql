-- Why is, or was, my group stuck in a rebalance?
--
-- One row per rebalance that took `slow_ms` or more, those that have not ended first, then the longest. JOIN: the group waited for
-- members to rejoin, longest for `waited_for` (the last one that it removed); while the rebalance is OPEN, for one or more of these.
-- SYNC: it waited for the leader's assignment (ASSIGN in `phases`). DELAY: the group had been empty, and the broker waited for more
-- members (group.initial.rebalance.delay.ms). RECONCILE: a group of the consumer protocol waited until all members had the new
-- assignment. `put_out` counts the members that the coordinator removed meanwhile: they did not join, synchronise or give up partitions
-- in time, were too many, or their session ended.
--
-- :cluster :group :since :until
-- :slow_ms = 5000  stuck if it takes so long, ms
-- :limit = 20

WITH slow AS (
  SELECT
    r.cluster, r.group_id, r.started_at, r.blamed AS cause, r.client_id, r.leader_id, r.id,
    CASE WHEN r.outcome = 'OPEN' OR r.ended_at > :until THEN 'OPEN' ELSE r.outcome END AS outcome,
    least(r.ended_at, :until) AS ended_at,
    CASE
      WHEN r.group_protocol <> 'classic' THEN 'RECONCILE'
      WHEN r.joined_at <= :until AND (r.outcome = 'OPEN' OR r.ended_at > :until) THEN 'SYNC'
      WHEN coalesce(r.join_ms, r.total_ms, 0) < coalesce(r.sync_ms, 0) AND r.joined_at <= :until THEN 'SYNC'
      WHEN r.members_before = 0 THEN 'DELAY'
      ELSE 'JOIN'
    END AS phase,
    CASE
      WHEN r.outcome = 'OPEN' OR r.ended_at > :until THEN unix_millis(least(r.ended_at, :until)) - unix_millis(r.started_at)
      ELSE r.total_ms
    END AS total_ms,
    coalesce(nullif(array_join(r.awaited, ', '), ''), r.slowest_member_id) AS waited_for
  FROM rebalances_with_culprit AS r
  WHERE in_scope(r.started_at)
),
removed AS (
  SELECT
    p.id, count(*) AS members,
    max_by(p.member_id, CAST(unix_millis(p.ended_at) AS STRING) || p.member_id) FILTER (WHERE p.while_joining) AS last_id
  FROM put_out AS p
  WHERE p.ended_at <= :until
  GROUP BY p.id
)
SELECT
  w.cluster,
  w.group_id,
  w.started_at,
  w.total_ms,
  w.outcome,
  w.phase,
  w.cause,
  w.client_id AS started_by,
  CASE w.phase WHEN 'SYNC' THEN w.leader_id WHEN 'DELAY' THEN NULL ELSE coalesce(p.last_id, w.waited_for) END AS waited_for,
  coalesce(p.members, 0) AS put_out,
  w.id
FROM slow AS w
LEFT JOIN removed AS p ON p.id = w.id
WHERE w.total_ms >= :slow_ms
ORDER BY CASE w.outcome WHEN 'OPEN' THEN 0 ELSE 1 END, w.total_ms DESC, w.started_at DESC, w.cluster, w.group_id, w.id
LIMIT :limit
