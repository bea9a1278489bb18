SELECT f.* FROM findings_with_broker AS f
WHERE ($cluster IS NULL OR f.cluster = $cluster) AND ($group IS NULL OR f.group_id = $group)
  AND f.occurred_at >= $since AND f.occurred_at > $after AND (f.batch_id > $findings OR f.culprit_broker IS NOT NULL)
ORDER BY f.occurred_at DESC, f.cluster DESC, f.group_id DESC, f.code DESC, f.id LIMIT $limit
