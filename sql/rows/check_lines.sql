-- The lines that evidence names. A row of the clock has the place of the line up to which it says that a log was read.
WITH texts AS (
    SELECT cluster, group_id, evidence FROM rebalances UNION SELECT cluster, group_id, evidence FROM member_sessions
),
refs AS (
    SELECT cluster, group_id, unnest(from_json(evidence, '[{"origin": "VARCHAR", "position": "VARCHAR"}]'), recursive := true)
    FROM texts
)
SELECT r.cluster, r.group_id, r.origin, r.position, e.broker, e.received_at, e.occurred_at
FROM refs AS r JOIN group_events AS e ON e.cluster = r.cluster AND e.origin = r.origin AND CAST(e.position AS VARCHAR) = r.position
WHERE e.source <> 'clock'
