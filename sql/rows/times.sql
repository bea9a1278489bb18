-- Rebalances as they are billed, each with the finding that it is blamed on: that of who is blamed instead of the one that began it, else
-- that of the failure with which it began: a client may tell long before the group acts on it, so the latest such finding counts. The
-- session of a static member that left for a while ends, too. Who is to blame for topics that changed nobody knows (blamed_rebalances), but
-- the group waited for the member that it then removed.
-- Of most groups that is all. All rebalances of a group count where one is compared with the others (bills.py), or a finding is about many.
WITH own AS (
    SELECT r.id, arg_max(f.id, (f.occurred_at, f.id)) AS finding_id
    FROM rebalances_with_id AS r
    JOIN findings_with_id AS f ON f.cluster = r.cluster AND f.group_id = r.group_id AND f.member_id IN (r.member_id, r.slowest_member_id)
        AND CASE WHEN r.cause IN ('METADATA_CHANGED', 'REGEX_RESOLVED') THEN f.code = 'REBALANCE_TIMEOUT' AND f.occurred_at > r.started_at
            ELSE f.member_id = r.member_id AND (f.code = r.cause OR f.code = 'STATIC_MEMBER_AWAY' AND r.cause = 'SESSION_TIMEOUT') END
        AND f.occurred_at BETWEEN r.started_at - INTERVAL 60 SECONDS AND r.ended_at
    GROUP BY r.id
),
compared AS (
    SELECT r.cluster, r.group_id FROM rebalances_now AS r WHERE r.total_ms >= $long_ms
    UNION
    SELECT f.cluster, f.group_id FROM findings AS f WHERE f.code IN ('REBALANCE_STORM', 'ROLLING_RESTART')
)
SELECT r.cluster, r.group_id, r.id, epoch_ms(r.started_at), epoch_ms(r.ended_at), r.total_ms, r.unavailable_partition_ms,
       coalesce(b.finding_id, o.finding_id) AS finding_id
FROM rebalances_with_id AS r LEFT JOIN blamed_rebalances AS b ON b.rebalance_id = r.id LEFT JOIN own AS o ON o.id = r.id
LEFT JOIN compared AS c ON c.cluster = r.cluster AND c.group_id = r.group_id
WHERE ($cluster IS NULL OR r.cluster = $cluster) AND ($group IS NULL OR r.group_id = $group)
      AND CASE WHEN r.outcome = 'OPEN' AND $since BETWEEN r.started_at AND r.ended_at THEN $since ELSE r.started_at END BETWEEN $since AND $until
      AND (coalesce(b.finding_id, o.finding_id) IS NOT NULL OR c.cluster IS NOT NULL)
ORDER BY r.started_at, r.ended_at, r.id
