-- Which clients start the most rebalances?
--
-- One row per client.id and host, first the one whose rebalances took the most time. `failures` counts the rebalances
-- that it did not start on purpose: sessions and polls that timed out, assignments that came too late. `cause` is the
-- most frequent cause. Start-ups are left out: the first rebalance of a group that was new or empty is nobody's fault.
--
-- :cluster     only this cluster
-- :group       only this consumer group
-- :since       from this time on
-- :until       up to this time
-- :limit = 20  rows at most

WITH started AS (
  SELECT
    r.*,
    count(*) OVER (PARTITION BY r.cluster, r.client_id, r.client_host, r.cause) AS of_cause
  FROM rebalances_with_id AS r
  WHERE r.client_id IS NOT NULL
    AND NOT r.startup
    AND (:cluster IS NULL OR r.cluster = :cluster)
    AND (:group IS NULL OR r.group_id = :group)
    AND r.started_at >= :since
    AND r.started_at <= :until
),
placed AS (
  SELECT
    s.*,
    row_number() OVER (PARTITION BY s.cluster, s.client_id, s.client_host ORDER BY s.of_cause DESC, s.cause, s.id) AS place
  FROM started AS s
)
SELECT
  p.cluster,
  p.client_id,
  p.client_host,
  count(DISTINCT p.group_id) AS groups,
  min(p.group_id) AS a_group,
  count(*) AS rebalances,
  count(*) FILTER (WHERE p.cause IN ('SESSION_TIMEOUT', 'POLL_TIMEOUT', 'SYNC_TIMEOUT')) AS failures,
  CAST(sum(p.total_ms) AS BIGINT) AS total_ms,
  CAST(sum(p.unavailable_partition_ms) AS BIGINT) AS unavailable_partition_ms,
  max(CASE WHEN p.place = 1 THEN p.cause END) AS cause,
  max(p.started_at) AS last_at
FROM placed AS p
GROUP BY p.cluster, p.client_id, p.client_host
ORDER BY total_ms DESC, rebalances DESC, p.cluster, p.client_id, p.client_host NULLS LAST
LIMIT :limit
