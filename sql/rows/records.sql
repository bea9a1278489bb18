SELECT cluster, group_id, started_at, ended_at, reread_min, reread_max, lag_added, catch_up_ms, gaps
FROM rebalance_records
WHERE ($cluster IS NULL OR cluster = $cluster) AND ($group IS NULL OR group_id = $group)
