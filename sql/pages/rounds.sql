SELECT x.* EXCLUDE (evidence, batch_id) FROM rebalance_rounds AS x
WHERE x.cluster = $cluster AND x.group_id = $group AND x.started_at BETWEEN $since AND $until
ORDER BY x.started_at, x.epoch LIMIT $limit
