SELECT cluster, group_id, id, epoch_ms(started_at), epoch_ms(ended_at), total_ms, unavailable_partition_ms
FROM rebalances_with_id
WHERE ($cluster IS NULL OR cluster = $cluster) AND ($group IS NULL OR group_id = $group)
ORDER BY started_at, ended_at, id
