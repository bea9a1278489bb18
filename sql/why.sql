-- Why does my group keep rebalancing, and who started it?
--
-- One row per group, cause and culprit; the one that took the most time comes first. Where a finding explains a rebalance, its code is
-- the cause: COORDINATOR_MOVED with the `broker` that the group left or that was held up; or a timeout or late join of another client,
-- for which all waited, and not the client that happened to join first. No client is the culprit where topics changed, an administrator
-- removed a member, a round follows another one (REVOCATION_FOLLOW_UP), a full group waited for a member that it had refused, or the
-- coordinator asked all to rejoin. `last_id` is the last of these rebalances: `rebalance evidence` shows the lines that prove it.
-- Start-ups are left out: the first rebalance of a group that was new or empty is no problem, and `first-join` shows it.
--
-- :cluster :group
-- :client  only what this client.id caused
-- :since :until :limit = 20

SELECT
  r.cluster,
  r.group_id,
  r.blamed AS cause,
  r.culprit_broker AS broker,
  r.culprit_client_id AS client_id,
  r.culprit_client_host AS client_host,
  count(*) AS rebalances,
  known_sum(r.total_ms) AS total_ms,
  known_sum(r.unavailable_partition_ms) AS unavailable_partition_ms,
  at_least(r.total_ms, r.unavailable_partition_ms) AS at_least,
  max(r.started_at) AS last_at,
  max_by(r.id, r.ended_at) AS last_id
FROM rebalances_with_culprit AS r
WHERE NOT r.startup
  AND in_scope(r.started_at)
  AND (:client IS NULL OR r.culprit_client_id = :client)
GROUP BY r.cluster, r.group_id, r.blamed, r.culprit_broker, r.culprit_client_id, r.culprit_client_host
ORDER BY
  total_ms DESC, rebalances DESC, r.cluster, r.group_id, cause, broker NULLS LAST, client_id NULLS LAST, client_host NULLS LAST
LIMIT :limit
