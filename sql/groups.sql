-- In which state is every group?
--
-- One row per group as it was at `until`, groups in a rebalance first: its state and since when, generation, members, and how often and
-- how long it has rebalanced so far, without start-ups (the first rebalance of a group that was new or empty). `last_cause` is the cause
-- of the last of these, as in `why`. A group of the consumer protocol (KIP-848) is Empty, Reconciling or Stable, and its generation is
-- the group epoch. UNKNOWN: no line shows a state. `group_protocol` is classic, consumer, share or streams. `protocol_type` says what a
-- classic group consists of if not of consumers, such as connect or sr.
--
-- :cluster :group :until :limit = 1000

WITH seen AS (
  SELECT
    e.cluster, e.group_id,
    max(e.occurred_at) AS seen_at,
    group_protocol(e) AS group_protocol,
    max_by(e.protocol_type, e.occurred_at) FILTER (WHERE e.kind IN ('JOIN_GROUP', 'GROUP_STORED') AND e.protocol_type <> 'consumer')
      AS protocol_type
  FROM group_events AS e
  WHERE e.group_id <> '' AND e.kind NOT IN ('OFFSETS_STORED', 'OFFSETS_POLLED')
    AND in_scope(e)
    AND e.occurred_at <= :until
  GROUP BY e.cluster, e.group_id
),
history AS (
  SELECT
    r.cluster, r.group_id,
    count(*) AS rebalances,
    known_sum(r.total_ms) AS total_ms,
    at_least(r.total_ms) AS at_least,
    max_by(r.blamed, r.ended_at) AS last_cause
  FROM rebalances_with_culprit AS r
  WHERE NOT r.startup
    AND r.ended_at <= :until
    AND in_scope(r)
  GROUP BY r.cluster, r.group_id
),
warned AS (
  SELECT f.cluster, f.group_id, count(*) AS findings
  FROM findings AS f
  WHERE f.occurred_at <= :until
    AND in_scope(f)
  GROUP BY f.cluster, f.group_id
),
told AS (
  SELECT
    s.cluster, s.group_id, s.group_protocol,
    nullif(s.protocol_type, '') AS protocol_type, t.state, t.entered_at AS since, t.generation,
    t.members, h.rebalances, h.total_ms, h.at_least, h.last_cause, w.findings
  FROM seen AS s
  LEFT JOIN group_states AS t ON t.cluster = s.cluster AND t.group_id = s.group_id
    AND t.since <= :until AND (t.next_at IS NULL OR t.next_at > :until)
  LEFT JOIN history AS h ON h.cluster = s.cluster AND h.group_id = s.group_id
  LEFT JOIN warned AS w ON w.cluster = s.cluster AND w.group_id = s.group_id
)
SELECT
  g.cluster,
  g.group_id,
  g.group_protocol,
  coalesce(g.state, 'UNKNOWN') AS state,
  g.since,
  g.generation,
  g.members,
  coalesce(g.rebalances, 0) AS rebalances,
  g.total_ms,
  g.at_least,
  g.last_cause,
  coalesce(g.findings, 0) AS findings,
  CASE WHEN g.group_protocol = 'classic' THEN g.protocol_type END AS protocol_type
FROM told AS g
ORDER BY
  CASE g.state WHEN 'PreparingRebalance' THEN 0 WHEN 'CompletingRebalance' THEN 1 WHEN 'Reconciling' THEN 2 ELSE 3 END,
  g.cluster, g.group_id
LIMIT :limit
