-- Why does a new group wait so long for its partitions?
--
-- One row per first rebalance of an empty group, the slowest first. The broker waits group.initial.rebalance.delay.ms (`delay_ms`, 3 s by
-- default) for more members, and as long again if one joins in that time, up to the rebalance timeout. `delays` counts these waits in the
-- join phase. The clients took the rest of the join phase, and `sync_ms`.
--
-- :cluster :group :since :until
-- :delay_ms = 3000  the broker's group.initial.rebalance.delay.ms
-- :limit = 20

SELECT
  r.cluster,
  r.group_id,
  r.started_at,
  r.total_ms,
  r.join_ms,
  CAST(CASE WHEN :delay_ms > 0 THEN floor(r.join_ms / :delay_ms) ELSE 0 END AS BIGINT) AS delays,
  r.sync_ms,
  r.members_after AS members,
  r.partitions,
  r.client_id AS first_client_id,
  r.id
FROM rebalances_with_id AS r
WHERE r.members_before = 0
  AND r.joined_at IS NOT NULL
  AND in_scope(r.started_at)
ORDER BY r.total_ms DESC, r.started_at DESC, r.cluster, r.group_id
LIMIT :limit
