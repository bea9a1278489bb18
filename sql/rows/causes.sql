-- Rebalances of each group: how many have no cause, began with a trouble that is no part of everyday life, or have no end.
SELECT x.cluster, x.group_id, count(*) AS rebalances, count(*) FILTER (x.blamed = 'UNKNOWN') AS unknown,
       count(*) FILTER (x.blamed IN ('SESSION_TIMEOUT', 'POLL_TIMEOUT', 'JOIN_TIMEOUT', 'SYNC_TIMEOUT', 'REBALANCE_TIMEOUT',
                                     'ASSIGNMENT_NOT_STORED', 'GROUP_OVER_CAPACITY')) AS troubled,
       min(x.started_at) FILTER (x.blamed = 'UNKNOWN') AS first_at,
       count(*) FILTER (x.outcome = 'ABANDONED') AS abandoned, max(x.ended_at) FILTER (x.outcome = 'ABANDONED') AS abandoned_at,
       bool_or(x.group_protocol = 'consumer') FILTER (x.blamed = 'UNKNOWN') AS by_epoch
FROM rebalances_with_culprit AS x
WHERE ($cluster IS NULL OR x.cluster = $cluster) AND ($group IS NULL OR x.group_id = $group) AND NOT x.startup
  AND x.started_at BETWEEN $since AND $until
GROUP BY ALL ORDER BY ALL
