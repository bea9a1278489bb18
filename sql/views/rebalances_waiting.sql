-- The last provisional row of each rebalance that has ended and has no final row yet, because later lines may correct it. A rebalance is known by its group,
-- its generation and the end of its join phase, or its own end if that did not end: these are never corrected, while the start is, where
-- only requests show it.
SELECT p.*
FROM rebalances_provisional AS p
WHERE p.outcome NOT IN ('OPEN', 'ENDED')
  AND NOT EXISTS (
    SELECT 1 FROM rebalances AS r
    WHERE r.cluster = p.cluster AND r.group_id = p.group_id
      AND coalesce(r.generation, -1) = coalesce(p.generation, -1)
      AND coalesce(r.joined_at, r.ended_at) = coalesce(p.joined_at, p.ended_at)
  )
  AND NOT EXISTS (
    SELECT 1 FROM rebalances_provisional AS n
    WHERE n.outcome NOT IN ('OPEN', 'ENDED')
      AND n.cluster = p.cluster AND n.group_id = p.group_id
      AND coalesce(n.generation, -1) = coalesce(p.generation, -1)
      AND coalesce(n.joined_at, n.ended_at) = coalesce(p.joined_at, p.ended_at)
      AND (n.batch_id > p.batch_id OR (n.batch_id = p.batch_id AND n.at_end AND NOT p.at_end))
  )
