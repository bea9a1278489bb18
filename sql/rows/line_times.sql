-- Rows of several heartbeats have the times of arrival; the broker writes the line with its answer, which came promptly. Lines come last: a
-- clock may stand at the line of another container, and have another time.
SELECT unnest(e.positions) AS position, epoch_ms(e.received_at) + unnest(e.beats) AS ms, $later_ms AS later_ms, 0 AS place
FROM group_events AS e WHERE e.origin = $origin AND len(e.positions) = len(e.beats)
UNION ALL
SELECT e.position, epoch_ms(e.occurred_at), 0, CASE e.source WHEN 'clock' THEN 1 ELSE 2 END
FROM group_events AS e WHERE e.origin = $origin ORDER BY place
