-- Why is, or was, my group stuck in a rebalance?
--
-- One row per rebalance that took `slow_ms` or more, first those that have not ended, then the longest. JOIN: the group
-- waited for members to join again, longest for `waited_for`. SYNC: it waited for the leader's assignment. DELAY: the
-- group had been empty, and the broker waited for more members (group.initial.rebalance.delay.ms). RECONCILE: a group of
-- the consumer protocol waited until all members had the new assignment. `put_out` counts the members that did not join
-- in time and were removed.
--
-- :cluster         only this cluster
-- :group           only this consumer group
-- :since           from this time on
-- :until           up to this time
-- :slow_ms = 5000  stuck from this on, ms
-- :limit = 20      rows at most

WITH latest AS (
  SELECT
    t.*,
    row_number() OVER (
      PARTITION BY t.cluster, t.group_id
      ORDER BY t.occurred_at DESC, coalesce(t.generation, -1) DESC, t.step DESC
    ) AS place
  FROM group_transitions_with_id AS t
  WHERE (:cluster IS NULL OR t.cluster = :cluster)
    AND (:group IS NULL OR t.group_id = :group)
    AND t.occurred_at <= :until
),
slow AS (
  SELECT
    l.cluster, l.group_id, l.occurred_at AS started_at, CAST(NULL AS TIMESTAMP) AS ended_at, 'OPEN' AS outcome, l.trigger AS cause,
    l.client_id AS client_id,
    CASE l.to_state WHEN 'PreparingRebalance' THEN 'JOIN' WHEN 'Reconciling' THEN 'RECONCILE' ELSE 'SYNC' END AS phase,
    unix_millis(:until) - unix_millis(l.occurred_at) AS total_ms,
    CAST(NULL AS STRING) AS waited_for, CAST(NULL AS STRING) AS leader_id, l.id
  FROM latest AS l
  WHERE l.place = 1
    AND l.to_state IN ('PreparingRebalance', 'CompletingRebalance', 'Reconciling')
    AND l.occurred_at >= :since
    AND NOT EXISTS (
      SELECT 1 FROM rebalances_now AS r
      WHERE r.cluster = l.cluster AND r.group_id = l.group_id
        AND r.started_at <= l.occurred_at AND r.ended_at >= l.occurred_at AND r.ended_at <= :until
    )
  UNION ALL
  SELECT
    r.cluster, r.group_id, r.started_at, r.ended_at, r.outcome, r.cause,
    r.client_id,
    CASE
      WHEN r.group_protocol <> 'classic' THEN 'RECONCILE'
      WHEN r.members_before = 0 THEN 'DELAY'
      WHEN coalesce(r.join_ms, r.total_ms, 0) >= coalesce(r.sync_ms, 0) THEN 'JOIN'
      ELSE 'SYNC'
    END AS phase,
    unix_millis(r.ended_at) - unix_millis(r.started_at) AS total_ms,
    r.slowest_member_id AS waited_for, r.leader_id, r.id
  FROM rebalances_with_id AS r
  WHERE (:cluster IS NULL OR r.cluster = :cluster)
    AND (:group IS NULL OR r.group_id = :group)
    AND r.started_at >= :since
    AND r.ended_at <= :until
),
put_out AS (
  SELECT w.id, count(*) AS members
  FROM slow AS w
  JOIN member_sessions AS s
    ON s.cluster = w.cluster AND s.group_id = w.group_id AND s.end_kind IN ('JOIN_TIMEOUT', 'SYNC_TIMEOUT', 'SESSION_TIMEOUT')
      AND s.ended_at > w.started_at AND s.ended_at <= coalesce(w.ended_at, :until)
  GROUP BY w.id
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
  CASE w.phase WHEN 'SYNC' THEN w.leader_id WHEN 'DELAY' THEN NULL ELSE w.waited_for END AS waited_for,
  coalesce(p.members, 0) AS put_out,
  w.id
FROM slow AS w
LEFT JOIN put_out AS p ON p.id = w.id
WHERE w.total_ms >= :slow_ms
ORDER BY CASE w.outcome WHEN 'OPEN' THEN 0 ELSE 1 END, w.total_ms DESC, w.started_at DESC, w.cluster, w.group_id, w.id
LIMIT :limit
