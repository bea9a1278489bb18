-- One that is open belongs to the time that is shown however long ago it began.
SELECT * EXCLUDE (batch_id, alarm, failed, from_empty)
FROM (
    SELECT * FROM rebalances_with_culprit
    WHERE ($cluster IS NULL OR cluster = $cluster) AND ($group IS NULL OR group_id = $group)
      AND CASE WHEN outcome = 'OPEN' AND $since BETWEEN started_at AND ended_at THEN $since ELSE started_at END BETWEEN $since AND $until
    ORDER BY startup, unavailable_partition_ms DESC NULLS LAST, total_ms DESC NULLS LAST, cluster, group_id, started_at, id
    LIMIT $limit
)
ORDER BY cluster, group_id, started_at, ended_at, generation
