-- In which state a group was, and how many members it had: a row for each change of state, which holds from `since` until before `next_at`
-- (null: until now). Of several changes in one millisecond the last one holds. `members`: those after the last rebalance that ended in that
-- time or before; 0 without members, null if not known. One that did not complete says nothing where its own number is not known. A broker
-- that gives a group up calls it Dead, though it lives on at another one: its state is UNKNOWN until a line of that one shows it, as it is
-- since its coordinator crashed (lost_to_crashes).
-- `entered_at`: when it came into that state, to which a coordinator that only reads it back in the same generation does not bring it.
-- Of a group that no line shows in another state, the last line by which a member came tells the state it was in; `entered_at` is null.
WITH changes AS (
  SELECT t.cluster, t.group_id, t.trigger, t.generation, t.occurred_at, t.step, t.from_state,
    CASE WHEN t.to_state = 'Dead' AND t.trigger = 'COORDINATOR_MOVED' THEN 'UNKNOWN' ELSE t.to_state END AS state
  FROM group_transitions_with_id AS t
  UNION ALL
  SELECT c.cluster, c.group_id, NULL, NULL, c.since, NULL, NULL, 'UNKNOWN' FROM lost_to_crashes AS c
),
spans AS (
  SELECT
    t.cluster, t.group_id, t.trigger, t.state, t.generation, t.occurred_at AS since,
    lead(t.occurred_at) OVER (
      PARTITION BY t.cluster, t.group_id ORDER BY t.occurred_at, coalesce(t.generation, -1), t.step, t.from_state, t.state
    ) AS next_at
  FROM changes AS t
),
known AS (
  SELECT
    s.*,
    s.trigger = 'GROUP_LOADED' AND s.state = lag(s.state) OVER w AND coalesce(s.generation, -1) = coalesce(lag(s.generation) OVER w, -1)
      AS goes_on
  FROM spans AS s
  WHERE s.state <> 'UNKNOWN'
  WINDOW w AS (PARTITION BY s.cluster, s.group_id ORDER BY s.since, s.next_at NULLS LAST)
),
lasting AS (
  SELECT
    k.cluster, k.group_id, k.state, k.generation, k.since, k.next_at,
    max(CASE WHEN NOT coalesce(k.goes_on, FALSE) THEN k.since END) OVER (
      PARTITION BY k.cluster, k.group_id ORDER BY k.since, k.next_at NULLS LAST ROWS UNBOUNDED PRECEDING
    ) AS entered_at
  FROM known AS k
  UNION ALL
  SELECT s.cluster, s.group_id, s.state, s.generation, s.since, s.next_at, s.since
  FROM spans AS s
  WHERE s.state = 'UNKNOWN'
)
SELECT
  s.cluster, s.group_id, s.state,
  CASE WHEN max(r.group_protocol) = 'share' THEN max(r.generation) ELSE s.generation END AS generation, -- its state changes with few epochs
  s.since, s.next_at, s.entered_at,
  CASE
    WHEN s.state IN ('Empty', 'Dead') THEN 0
    WHEN s.state <> 'UNKNOWN' THEN nullif(max_by(coalesce(r.members_after, -1), (r.ended_at, r.started_at, coalesce(r.generation, -1))), -1)
  END AS members
FROM lasting AS s
LEFT JOIN rebalances_now AS r ON r.cluster = s.cluster AND r.group_id = s.group_id
  AND r.ended_at < coalesce(s.next_at, TIMESTAMP '9999-12-31 00:00:00') AND (r.members_after IS NOT NULL OR r.outcome = 'COMPLETED')
GROUP BY s.cluster, s.group_id, s.state, s.generation, s.since, s.next_at, s.entered_at
UNION ALL
SELECT x.cluster, x.group_id, max_by(x.state, CAST(unix_millis(x.occurred_at) AS STRING) || x.state), NULL, max(x.occurred_at), NULL, NULL, NULL
FROM group_events AS x
WHERE x.kind IN ('MEMBER_ID_ISSUED', 'STATIC_MEMBER_REPLACED') AND x.state IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM changes AS t WHERE t.cluster = x.cluster AND t.group_id = x.group_id)
GROUP BY x.cluster, x.group_id
