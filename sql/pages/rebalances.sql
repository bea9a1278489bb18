SELECT x.* EXCLUDE (evidence, batch_id, from_empty) FROM rebalances_with_culprit AS x
WHERE x.cluster = $cluster AND x.group_id = $group AND x.started_at <= $until AND x.ended_at >= $since
ORDER BY x.started_at, x.ended_at, x.generation NULLS FIRST, x.id LIMIT $limit
