SELECT x.* EXCLUDE (evidence, batch_id) FROM findings_with_id AS x WHERE x.id LIKE $id || '%' ORDER BY x.id LIMIT $limit
