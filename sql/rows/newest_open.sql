SELECT cluster, group_id, started_at, limit_ms, total_ms, outcome FROM rebalances_provisional
WHERE outcome IN ('OPEN', 'ENDED')
QUALIFY row_number() OVER (PARTITION BY cluster, group_id ORDER BY batch_id DESC, at_end DESC, started_at DESC, outcome) = 1 AND outcome = 'OPEN'
ORDER BY started_at DESC LIMIT $1
