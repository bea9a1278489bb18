-- Which clients cause the most rebalances?
--
-- One row per client.id and host; the one whose rebalances took the most time comes first. Where a finding explains a rebalance, the
-- culprit is the client that timed out or joined late while all waited for it, not the one that happened to join first. Rebalances for
-- which `why` names nobody count for no client. `failures` counts the rebalances that the client did not cause on purpose: sessions and
-- polls that timed out, assignments and joins that came too late. `cause` took most of the time. Start-ups are left out:
-- the first rebalance of a group that was new or empty is nobody's fault.
--
-- :cluster :group :since :until :limit = 20

WITH caused AS (
  SELECT
    r.cluster, r.group_id, r.started_at, r.total_ms, r.unavailable_partition_ms,
    r.failed, r.blamed AS cause, r.culprit_client_id AS client_id, r.culprit_client_host AS client_host
  FROM rebalances_with_culprit AS r
  WHERE r.culprit_client_id IS NOT NULL
    AND NOT r.startup
    AND in_scope(r.started_at)
),
by_cause AS (
  SELECT
    c.cluster, c.client_id, c.client_host, c.cause,
    row_number() OVER (
      PARTITION BY c.cluster, c.client_id, c.client_host ORDER BY sum(c.total_ms) DESC NULLS LAST, c.cause
    ) AS place
  FROM caused AS c
  GROUP BY c.cluster, c.client_id, c.client_host, c.cause
)
SELECT
  p.cluster,
  p.client_id,
  p.client_host,
  count(DISTINCT p.group_id) AS groups,
  min(p.group_id) AS a_group,
  count(*) AS rebalances,
  count(*) FILTER (WHERE p.failed) AS failures,
  known_sum(p.total_ms) AS total_ms,
  known_sum(p.unavailable_partition_ms) AS unavailable_partition_ms,
  at_least(p.total_ms, p.unavailable_partition_ms) AS at_least,
  max(c.cause) AS cause,
  max(p.started_at) AS last_at
FROM caused AS p
JOIN by_cause AS c
  ON c.cluster = p.cluster AND c.client_id = p.client_id AND c.client_host IS NOT DISTINCT FROM p.client_host AND c.place = 1
GROUP BY p.cluster, p.client_id, p.client_host
ORDER BY total_ms DESC, rebalances DESC, p.cluster, p.client_id, p.client_host NULLS LAST
LIMIT :limit
