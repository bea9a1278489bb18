-- $rebalances, $rebalances_provisional, $findings: the newest micro-batch of each table that was seen.
SELECT r.* FROM rebalances_with_culprit AS r
WHERE ($cluster IS NULL OR r.cluster = $cluster) AND ($group IS NULL OR r.group_id = $group)
  AND r.started_at >= $since AND r.ended_at > $after AND (
    r.batch_id > CASE WHEN r.waits_for IS NULL THEN $rebalances ELSE $rebalances_provisional END
    OR r.finding_id IN (SELECT f.id FROM findings_with_id AS f WHERE f.batch_id > $findings)
    OR r.culprit_broker IS NOT NULL
  )
ORDER BY r.ended_at DESC, r.started_at DESC, r.cluster DESC, r.group_id DESC, r.id LIMIT $limit
