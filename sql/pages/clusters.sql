SELECT DISTINCT x.cluster FROM group_events AS x WHERE x.group_id <> '' ORDER BY x.cluster LIMIT $limit
