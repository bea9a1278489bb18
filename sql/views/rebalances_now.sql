-- The newest row of each rebalance: the final one, or the last provisional one as long as later lines may correct it. `waits_for` says what
-- such a row waits for, and is null in a final one.
SELECT CAST(NULL AS STRING) AS waits_for, r.*
FROM rebalances AS r
UNION ALL
SELECT w.*
FROM rebalances_waiting AS w
