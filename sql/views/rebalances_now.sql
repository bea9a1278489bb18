-- The newest row of each rebalance: the final one, the last provisional one as long as later lines may correct it, or that of one which is
-- OPEN. `waits_for` says what a row waits for that is not final, and is null in a final one; the columns up to `alarm` are those of an open one.
SELECT
  CAST(NULL AS STRING) AS waits_for, NULL AS awaited, CAST(NULL AS INT) AS awaited_unnamed,
  CAST(NULL AS BIGINT) AS limit_ms, CAST(NULL AS STRING) AS broker, CAST(NULL AS STRING) AS alarm, r.*
FROM rebalances AS r
UNION ALL
SELECT w.*
FROM rebalances_waiting AS w
UNION ALL
SELECT o.*
FROM rebalances_open AS o
