-- Which groups rebalance in storms?
--
-- One row per finding REBALANCE_STORM, the one with most rebalances first: clients came back or left again and again, and the group did
-- little else. `ended_at` is when the last of its rebalances ended. `busy_percent` is the share of that time that the group spent
-- rebalancing. `cause` is the most frequent one that `why` tells; of equally frequent ones, the first by name. `client_id` began nearly
-- all of them; null if several did. `id` is that of the finding: `rebalance evidence ID` shows the lines that prove it. A storm of more
-- than ten minutes has a row for each ten.
--
-- :cluster :group :since :until :limit = 20

WITH storms AS (
  SELECT b.*
  FROM bursts AS b
  WHERE b.code = 'REBALANCE_STORM'
    AND in_scope(b.started_at)
),
causes AS (
  SELECT
    s.id, r.blamed AS cause, max(max(r.ended_at)) OVER (PARTITION BY s.id) AS ended_at,
    row_number() OVER (PARTITION BY s.id ORDER BY count(*) DESC, r.blamed) AS place
  FROM storms AS s
  JOIN rebalances_with_culprit AS r
    ON r.cluster = s.cluster AND r.group_id = s.group_id AND r.started_at >= s.started_at AND r.started_at <= s.last_at
  GROUP BY s.id, r.blamed
)
SELECT
  s.cluster,
  s.group_id,
  s.started_at,
  coalesce(e.ended_at, s.last_at) AS ended_at,
  s.rebalances,
  s.total_ms,
  CAST(round(
    100 * CAST(s.total_ms AS DOUBLE) / greatest(unix_millis(coalesce(e.ended_at, s.last_at)) - unix_millis(s.started_at), 1)
  ) AS INT) AS busy_percent,
  s.unavailable_partition_ms,
  s.at_least,
  e.cause,
  s.client_id,
  s.id
FROM storms AS s
LEFT JOIN causes AS e ON e.id = s.id AND e.place = 1
ORDER BY s.rebalances DESC, s.started_at DESC, s.cluster, s.group_id, s.id
LIMIT :limit
