-- Why was my commit refused: who was removed from the group, and when?
--
-- One row per member and error, the newest first: how many commits were refused, and how the membership had ended
-- before. The client's message (CommitFailedException) blames max.poll.interval.ms in every case; `removed_by` is the
-- real reason. A row without a member id is about an admin tool (generation -1), or about a client that had given up its
-- id. Needs kafka-request.log: the coordinator log has no line for a refused commit.
--
-- :cluster     only this cluster
-- :group       only this consumer group
-- :client      only this client.id
-- :member      only members whose id contains this
-- :since       from this time on
-- :until       up to this time
-- :limit = 20  rows at most

WITH refused AS (
  SELECT
    e.cluster, e.group_id, e.member_id, e.error_code,
    coalesce(e.client_id, '') AS client_id,
    coalesce(e.client_host, '') AS client_host,
    min(e.generation) AS sent_generation,
    CAST(sum(e.lines) AS BIGINT) AS commits,
    min(e.occurred_at) AS first_at,
    max(e.occurred_at) AS last_at
  FROM group_events AS e
  WHERE e.kind IN ('OFFSET_COMMIT', 'TXN_OFFSET_COMMIT')
    AND e.error_code IN (22, 25, 27, 82)
    AND (:cluster IS NULL OR e.cluster = :cluster)
    AND (:group IS NULL OR e.group_id = :group)
    AND (:client IS NULL OR e.client_id = :client)
    AND (:member IS NULL OR position(:member IN e.member_id) > 0)
    AND e.occurred_at >= :since
    AND e.occurred_at <= :until
  GROUP BY e.cluster, e.group_id, e.member_id, e.error_code, coalesce(e.client_id, ''), coalesce(e.client_host, '')
),
removals AS (
  SELECT
    c.cluster, c.group_id, c.member_id, c.error_code, c.client_id, c.client_host,
    s.ended_at, s.end_kind, s.id,
    row_number() OVER (
      PARTITION BY c.cluster, c.group_id, c.member_id, c.error_code, c.client_id, c.client_host
      ORDER BY s.ended_at DESC, s.end_kind
    ) AS newest
  FROM refused AS c
  JOIN member_sessions_with_id AS s
    ON s.cluster = c.cluster AND s.group_id = c.group_id AND s.member_id = c.member_id AND s.ended_at <= c.last_at
)
SELECT
  c.cluster,
  c.group_id,
  c.client_id,
  c.client_host,
  c.member_id,
  CASE c.error_code
    WHEN 22 THEN 'ILLEGAL_GENERATION'
    WHEN 25 THEN 'UNKNOWN_MEMBER_ID'
    WHEN 27 THEN 'REBALANCE_IN_PROGRESS'
    ELSE 'FENCED_INSTANCE_ID'
  END AS error,
  c.commits,
  c.sent_generation,
  c.first_at,
  c.last_at,
  o.end_kind AS removed_by,
  o.ended_at AS removed_at,
  o.id AS removed_id
FROM refused AS c
LEFT JOIN removals AS o
  ON o.cluster = c.cluster AND o.group_id = c.group_id AND o.member_id = c.member_id AND o.error_code = c.error_code
    AND o.client_id = c.client_id AND o.client_host = c.client_host AND o.newest = 1
ORDER BY c.last_at DESC, c.cluster, c.group_id, c.client_id, c.client_host, c.member_id, c.error_code
LIMIT :limit
