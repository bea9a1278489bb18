SELECT * EXCLUDE (batch_id) FROM findings_with_id WHERE code = 'COORDINATOR_MOVED'
ORDER BY occurred_at, cluster, group_id, member_id, details
