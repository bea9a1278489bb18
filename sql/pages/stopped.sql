SELECT x.* EXCLUDE (evidence, batch_id) FROM rebalance_offsets AS x
WHERE x.cluster = $cluster AND x.group_id = $group AND x.started_at = $since AND x.ended_at = $until ORDER BY x.partition LIMIT $limit
