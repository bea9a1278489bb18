-- Why was my commit refused: who was removed from the group, and when?
--
-- One row per member and error, the newest first: how many commits were refused, and how the membership had ended before. The client's
-- message (CommitFailedException) always blames max.poll.interval.ms; `removed_by` is the real reason. A row without a member id is about
-- an admin tool (generation -1), or about a client that had given up its id: `removed_by` is then that of the last member that had left
-- its connection. Needs kafka-request.log: the coordinator log has no line for a refused commit.
--
-- :cluster :group :client :member :since :until :limit = 20

WITH refused AS (
  SELECT
    e.cluster, e.group_id, e.sent_id AS member_id, e.error_code,
    coalesce(e.client_id, '') AS client_id,
    coalesce(e.client_host, '') AS client_host,
    min(e.generation) AS sent_generation,
    CAST(sum(e.lines) AS BIGINT) AS commits,
    min(e.occurred_at) AS first_at,
    max(e.occurred_at) AS last_at,
    max_by(e.removed_by, e.removed_at) AS removed_by,
    max(e.removed_at) AS removed_at,
    max_by(e.removed_id, e.removed_at) AS removed_id
  FROM refused_requests AS e
  WHERE e.kind IN ('OFFSET_COMMIT', 'TXN_OFFSET_COMMIT')
    AND in_scope(e.occurred_at)
    AND (:client IS NULL OR e.client_id = :client)
    AND (:member IS NULL OR position(:member IN e.sent_id) > 0)
  GROUP BY e.cluster, e.group_id, e.sent_id, e.error_code, coalesce(e.client_id, ''), coalesce(e.client_host, '')
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
  c.removed_by,
  c.removed_at,
  c.removed_id
FROM refused AS c
ORDER BY c.last_at DESC, c.cluster, c.group_id, c.client_id, c.client_host, c.member_id, c.error_code
LIMIT :limit
