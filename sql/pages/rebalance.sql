SELECT x.* EXCLUDE (evidence, batch_id, from_empty) FROM rebalances_with_culprit AS x WHERE x.id LIKE $id || '%' ORDER BY x.id LIMIT $limit
