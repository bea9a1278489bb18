-- How many groups are in which state?
--
-- One row per protocol and state as it was at `until`, groups in a rebalance first. `members` is the sum of the members of these groups.
-- A group of the consumer protocol (KIP-848) is Empty, Reconciling or Stable. Share and streams groups have protocols of their own.
-- UNKNOWN: no line shows a state.
--
-- :cluster :until :limit = 40

WITH seen AS (
  SELECT e.cluster, e.group_id, group_protocol(e) AS group_protocol
  FROM group_events AS e
  WHERE e.group_id <> '' AND e.kind NOT IN ('OFFSETS_STORED', 'OFFSETS_POLLED')
    AND (:cluster IS NULL OR e.cluster = :cluster)
    AND e.occurred_at <= :until
  GROUP BY e.cluster, e.group_id
),
told AS (
  SELECT s.cluster, s.group_id, s.group_protocol, coalesce(t.state, 'UNKNOWN') AS state, t.members
  FROM seen AS s
  LEFT JOIN group_states AS t ON t.cluster = s.cluster AND t.group_id = s.group_id
    AND t.since <= :until AND (t.next_at IS NULL OR t.next_at > :until)
)
SELECT
  g.state,
  g.group_protocol,
  count(*) AS groups,
  known_sum(g.members) AS members,
  at_least(g.members) AS at_least
FROM told AS g
GROUP BY g.state, g.group_protocol
ORDER BY
  CASE g.state WHEN 'PreparingRebalance' THEN 0 WHEN 'CompletingRebalance' THEN 1 WHEN 'Reconciling' THEN 2 WHEN 'Stable' THEN 3 ELSE 4 END,
  g.state, g.group_protocol
LIMIT :limit
