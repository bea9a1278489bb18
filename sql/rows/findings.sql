SELECT * EXCLUDE (batch_id, culprit_broker, incident)
FROM findings_with_broker
WHERE ($cluster IS NULL OR cluster = $cluster) AND ($group IS NULL OR group_id = $group) AND occurred_at BETWEEN $since AND $until
ORDER BY occurred_at, cluster, group_id, code, member_id, details
