-- Who is, or was, a member of the group, and how did each membership end?
--
-- One row per membership, current ones first, then the last that ended. `ended_at` and `end_kind` are null while it lasts.
-- `longest_gap_ms` is the longest time without a sign of life that the session of an ended membership survived; `heartbeats` has that of
-- the others.
--
-- :cluster :group :client :member
-- :since  those that ended from this time on, or last
-- :until  those that began up to this time
-- :limit = 100

WITH went AS (
  SELECT s.cluster, s.group_id, s.member_id, s.ended_at FROM member_sessions AS s
  UNION ALL  -- the coordinator logs that a member joins before it refuses that
  SELECT e.cluster, e.group_id, coalesce(nullif(e.answer_member_id, ''), e.member_id), e.occurred_at FROM group_events AS e
  WHERE e.kind IN ('CONSUMER_GROUP_HEARTBEAT', 'SHARE_GROUP_HEARTBEAT', 'STREAMS_GROUP_HEARTBEAT') AND e.generation = 0
    AND e.error_code NOT IN (0, 7, 14, 15, 16)
  UNION ALL  -- from the log of the coordinator alone: what is stored of a member shows that it was taken
  SELECT e.cluster, e.group_id, e.member_id, e.occurred_at FROM group_events AS e
  WHERE e.state = 'JOINED' AND e.protocol_type IN ('share', 'streams') AND NOT EXISTS (
    SELECT 1 FROM group_events AS a
    WHERE a.cluster = e.cluster AND a.group_id = e.group_id AND a.member_id = e.member_id AND a.state = 'ASSIGNMENT_STORED'
      AND a.occurred_at >= e.occurred_at
  )
),
there AS (
  SELECT c.cluster, c.group_id, c.member_id, min(c.received_at) AS joined_at
  FROM member_joins AS c
  WHERE in_scope(c)
    AND NOT EXISTS (
      SELECT 1 FROM went AS w
      WHERE w.cluster = c.cluster AND w.group_id = c.group_id AND w.member_id = c.member_id AND w.ended_at >= c.received_at
    )
  GROUP BY c.cluster, c.group_id, c.member_id
),
memberships AS (
  SELECT
    s.cluster, s.group_id, s.member_id, s.client_id, s.client_host, s.instance_id, s.software, s.joined_at, s.ended_at, s.end_kind,
    s.session_timeout_ms, s.rebalance_timeout_ms, s.heartbeats, s.longest_gap_ms, s.id
  FROM member_sessions_with_id AS s
  UNION ALL
  SELECT
    t.cluster, t.group_id, t.member_id, a.client_id, a.client_host, a.instance_id, a.software, t.joined_at, NULL, NULL,
    a.session_timeout_ms, a.rebalance_timeout_ms, NULL, NULL, NULL
  FROM there AS t
  LEFT JOIN arrivals AS a ON a.cluster = t.cluster AND a.group_id = t.group_id AND a.member_id = t.member_id
)
SELECT
  m.cluster,
  m.group_id,
  m.client_id,
  m.client_host,
  m.member_id,
  m.instance_id,
  m.software,
  m.joined_at,
  m.ended_at,
  m.end_kind,
  m.session_timeout_ms,
  m.rebalance_timeout_ms,
  m.heartbeats,
  m.longest_gap_ms,
  m.id
FROM memberships AS m
WHERE in_scope(m)
  AND (:client IS NULL OR m.client_id = :client)
  AND (:member IS NULL OR position(:member IN m.member_id) > 0)
  AND (m.ended_at IS NULL OR m.ended_at >= :since)
  AND (m.joined_at IS NULL OR m.joined_at <= :until)
ORDER BY
  CASE WHEN m.ended_at IS NULL THEN 0 ELSE 1 END, m.ended_at DESC NULLS FIRST, m.joined_at DESC NULLS LAST, m.cluster, m.group_id,
  m.member_id, m.id
LIMIT :limit
