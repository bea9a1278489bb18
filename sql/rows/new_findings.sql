SELECT f.*, i.broker AS culprit_broker, i.id AS incident
FROM findings_with_id AS f
LEFT JOIN incidents AS i ON i.cluster = f.cluster AND list_contains(i.findings, f.id)
WHERE ($cluster IS NULL OR f.cluster = $cluster) AND ($group IS NULL OR f.group_id = $group)
  AND f.occurred_at >= $since AND f.occurred_at > $after AND (f.batch_id > $findings OR i.broker IS NOT NULL)
ORDER BY f.occurred_at DESC, f.cluster DESC, f.group_id DESC, f.code DESC, f.id LIMIT $limit
