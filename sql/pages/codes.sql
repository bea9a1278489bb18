SELECT DISTINCT x.code FROM findings AS x ORDER BY x.code LIMIT $limit
