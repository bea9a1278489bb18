-- The rebalances that are open in a time, with how long rebalances of the group usually take, and whether the ends of all are missing.
SELECT r.*, (
    SELECT median(n.total_ms) FROM rebalances_with_id AS n
    WHERE n.cluster = r.cluster AND n.group_id = r.group_id AND n.outcome <> 'OPEN' AND NOT n.from_empty
) AS usual_ms, (
    SELECT count(*) > 0 AND NOT bool_or(n.end_seen) FROM rebalances_with_id AS n
    WHERE n.cluster = r.cluster AND n.group_id = r.group_id AND n.outcome <> 'OPEN'
) AS ends_missing
FROM rebalances_with_id AS r
WHERE r.outcome = 'OPEN' AND ($cluster IS NULL OR r.cluster = $cluster) AND ($group IS NULL OR r.group_id = $group)
  AND r.started_at <= $until AND r.ended_at >= $since
ORDER BY r.started_at, r.cluster, r.group_id
