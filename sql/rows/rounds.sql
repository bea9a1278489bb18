SELECT x.* EXCLUDE (evidence, batch_id) FROM rebalance_rounds AS x
WHERE x.cluster = $cluster AND x.group_id = $group_id AND x.generation = $generation AND x.started_at BETWEEN $started_at AND $ended_at
ORDER BY x.started_at, x.epoch
