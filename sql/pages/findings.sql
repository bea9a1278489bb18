SELECT x.* EXCLUDE (evidence, batch_id, culprit_broker, incident) FROM findings_with_broker AS x
WHERE x.cluster = $cluster AND x.group_id = $group AND x.occurred_at BETWEEN $since AND $until
ORDER BY x.occurred_at, x.code, x.member_id NULLS FIRST, x.id LIMIT $limit
