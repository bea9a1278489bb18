-- Who still sends requests for a past generation, or under an id that was removed?
--
-- One row per such member, the longest-lived first. `zombie_ms` is the time from its removal to its last refused request (errors 22, 25,
-- 82). In that time the process may have worked on partitions that others already owned. `commits` counts the refused commits among
-- `requests`. A request without an id counts for the last member that had left its connection. Requests within ten seconds after a client
-- left may cross its leave, and do not count. Needs kafka-request.log: the coordinator log has no line for these refusals.
--
-- :cluster :group :client :member :since :until :limit = 20

WITH refused AS (
  SELECT
    e.cluster, e.group_id, e.member_id,
    max(e.client_id) AS client_id,
    max(e.client_host) AS client_host,
    CAST(sum(e.lines) AS BIGINT) AS requests,
    CAST(coalesce(sum(CASE WHEN e.kind IN ('OFFSET_COMMIT', 'TXN_OFFSET_COMMIT') THEN e.lines END), 0) AS BIGINT) AS commits,
    array_join(array_sort(array_agg(DISTINCT e.kind)), ', ') AS requests_of,
    max(e.occurred_at) AS last_at,
    max_by(e.removed_by, e.removed_at) AS removed_by,
    max(e.removed_at) AS removed_at,
    max_by(e.removed_id, e.removed_at) AS removed_id
  FROM refused_requests AS e
  WHERE e.error_code <> 27
    AND NOT e.crossed
    AND e.member_id <> ''
    AND in_scope(e.occurred_at)
    AND (:client IS NULL OR e.client_id = :client)
    AND (:member IS NULL OR position(:member IN e.member_id) > 0)
  GROUP BY e.cluster, e.group_id, e.member_id
)
SELECT
  z.cluster,
  z.group_id,
  z.client_id,
  z.client_host,
  z.member_id,
  z.removed_by,
  z.removed_at,
  z.last_at,
  unix_millis(z.last_at) - unix_millis(z.removed_at) AS zombie_ms,
  z.requests,
  z.commits,
  z.requests_of,
  z.removed_id
FROM refused AS z
ORDER BY zombie_ms DESC NULLS LAST, z.last_at DESC, z.cluster, z.group_id, z.member_id
LIMIT :limit
