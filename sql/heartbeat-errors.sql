-- "Attempt to heartbeat failed since group is rebalancing": is that an error?
--
-- No: this is how members learn of a rebalance. What matters is how fast they rejoin. One row per group and generation that ended so, the
-- slowest first: how many members were told, how often, and the time from the first such answer to the JoinGroup of the slowest member,
-- none if that was already on its way. SLOW: it took `slow_ms` or more, since that member's poll loop was busy or its process paused.
-- `never` counts members that did not rejoin. Needs kafka-request.log.
--
-- :cluster :group :since :until
-- :slow_ms = 3000  slow if it takes so long, ms
-- :limit = 20

WITH told AS (
  SELECT
    e.cluster, e.group_id, e.generation, e.member_id,
    max(e.client_id) AS client_id,
    max(e.client_host) AS client_host,
    min(e.received_at) AS told_at,
    CAST(sum(e.lines) AS BIGINT) AS times
  FROM group_events AS e
  WHERE e.kind = 'HEARTBEAT'
    AND e.error_code = 27
    AND in_scope(e.received_at)
  GROUP BY e.cluster, e.group_id, e.generation, e.member_id
),
answered AS (
  SELECT
    t.cluster, t.group_id, t.generation, t.member_id, t.client_id, t.client_host, t.told_at, t.times,
    greatest(unix_millis(min(j.received_at)) - unix_millis(t.told_at), 0) AS reaction_ms
  FROM told AS t
  LEFT JOIN group_events AS j
    ON j.cluster = t.cluster AND j.group_id = t.group_id AND j.member_id = t.member_id
      AND j.kind = 'JOIN_GROUP' AND j.occurred_at >= t.told_at
  GROUP BY t.cluster, t.group_id, t.generation, t.member_id, t.client_id, t.client_host, t.told_at, t.times
),
ranked AS (
  SELECT
    a.*,
    row_number() OVER (
      PARTITION BY a.cluster, a.group_id, a.generation
      ORDER BY coalesce(a.reaction_ms, -1) DESC, a.member_id
    ) AS place
  FROM answered AS a
)
SELECT
  a.cluster,
  a.group_id,
  a.generation,
  min(a.told_at) AS first_at,
  count(*) AS members,
  CAST(sum(a.times) AS BIGINT) AS times,
  CAST(floor(median(a.reaction_ms)) AS BIGINT) AS median_ms,
  max(a.reaction_ms) AS slowest_ms,
  max(CASE WHEN a.place = 1 AND a.reaction_ms IS NOT NULL THEN a.client_id END) AS slowest_client_id,
  max(CASE WHEN a.place = 1 AND a.reaction_ms IS NOT NULL THEN a.client_host END) AS slowest_client_host,
  count(*) - count(a.reaction_ms) AS never,
  CASE WHEN max(a.reaction_ms) >= :slow_ms THEN 'SLOW' ELSE 'NORMAL' END AS verdict
FROM ranked AS a
GROUP BY a.cluster, a.group_id, a.generation
ORDER BY slowest_ms DESC NULLS LAST, first_at DESC, a.cluster, a.group_id, a.generation
LIMIT :limit
