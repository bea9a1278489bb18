-- Groups that rebalanced at all, be it as they started.
SELECT DISTINCT x.cluster, x.group_id FROM rebalances_with_id AS x
WHERE ($cluster IS NULL OR x.cluster = $cluster) AND x.started_at <= $until AND x.ended_at >= $since
ORDER BY x.cluster, x.group_id LIMIT $limit
