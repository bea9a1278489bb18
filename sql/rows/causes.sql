-- Rebalances of each group: how many have no cause, or none as long as lines that come next may show it (`waiting`), began with a trouble
-- that is no part of everyday life, or have no end.
SELECT x.cluster, x.group_id, count(*) AS rebalances, count(*) FILTER (x.blamed = 'UNKNOWN' AND NOT x.waiting) AS unknown,
       count(*) FILTER (x.blamed = 'UNKNOWN' AND x.waiting) AS waiting,
       count(*) FILTER (x.blamed IN ('SESSION_TIMEOUT', 'POLL_TIMEOUT', 'JOIN_TIMEOUT', 'SYNC_TIMEOUT', 'REBALANCE_TIMEOUT',
                                     'ASSIGNMENT_NOT_STORED', 'GROUP_OVER_CAPACITY')) AS troubled,
       min(x.started_at) FILTER (x.blamed = 'UNKNOWN' AND NOT x.waiting) AS first_at,
       count(*) FILTER (x.outcome = 'ABANDONED' AND c.occurred_at IS NULL) AS abandoned,
       max(x.ended_at) FILTER (x.outcome = 'ABANDONED' AND c.occurred_at IS NULL) AS abandoned_at,
       bool_or(x.group_protocol = 'consumer') FILTER (x.blamed = 'UNKNOWN') AS by_epoch
FROM (SELECT r.*, r.waits_for IS NOT NULL AND r.outcome <> 'OPEN' AS waiting FROM rebalances_with_culprit AS r) AS x
LEFT JOIN group_transitions AS c  -- the group changed its protocol meanwhile
    ON c.cluster = x.cluster AND c.group_id = x.group_id AND c.occurred_at = x.ended_at AND c.trigger LIKE 'CONVERTED%'
WHERE ($cluster IS NULL OR x.cluster = $cluster) AND ($group IS NULL OR x.group_id = $group) AND NOT x.startup
  AND x.started_at BETWEEN $since AND $until
GROUP BY ALL ORDER BY ALL
