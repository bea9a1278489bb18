-- What happened in this group, step by step?
--
-- One row per change of the group's state, per end of a membership and per finding, in the order of time. Give --group. UNKNOWN: the
-- broker gave up the group (COORDINATOR_MOVED), which lives on at another one, or had just loaded it (GROUP_LOADED).
--
-- :cluster :group
-- :client  only what concerns this client.id
-- :since :until :limit = 200

WITH steps AS (
  SELECT
    t.cluster, t.group_id, t.occurred_at, 1 + t.step AS step,
    CASE WHEN t.from_state = 'Dead' AND t.trigger = 'GROUP_LOADED' THEN 'UNKNOWN' ELSE t.from_state END || ' > '
      || CASE WHEN t.to_state = 'Dead' AND t.trigger = 'COORDINATOR_MOVED' THEN 'UNKNOWN' ELSE t.to_state END AS what,
    t.generation, t.trigger AS cause,
    t.client_id, t.client_host, t.member_id, t.reason AS detail, t.id
  FROM group_transitions_with_id AS t
  UNION ALL
  SELECT
    s.cluster, s.group_id, s.ended_at, 0, 'member gone', NULL, s.end_kind,
    s.client_id, s.client_host, s.member_id,
    CASE WHEN s.joined_at IS NOT NULL
      THEN 'in the group for ' || CAST(CAST(round((unix_millis(s.ended_at) - unix_millis(s.joined_at)) / 1000) AS BIGINT) AS STRING) || ' s'
    END,
    s.id
  FROM member_sessions_with_id AS s
  UNION ALL
  SELECT
    a.cluster, a.group_id, a.came_at, 0, 'member came', NULL, NULL,
    a.client_id, a.client_host, a.member_id, a.software, NULL
  FROM arrivals AS a
  UNION ALL
  SELECT
    f.cluster, f.group_id, f.occurred_at, 9, 'finding ' || f.severity, f.generation, f.code,
    f.client_id, f.client_host, f.member_id, f.message, f.id
  FROM findings_with_id AS f
)
SELECT
  p.occurred_at,
  p.cluster,
  p.group_id,
  p.what,
  p.generation,
  p.cause,
  p.client_id,
  p.client_host,
  p.member_id,
  p.detail,
  p.id
FROM steps AS p
WHERE in_scope(p.occurred_at)
  AND (:client IS NULL OR p.client_id = :client)
ORDER BY
  p.occurred_at, p.cluster, p.group_id, CASE p.step WHEN 0 THEN 0 WHEN 9 THEN 2 ELSE 1 END, p.generation NULLS FIRST, p.step,
  p.what, p.cause NULLS FIRST, p.member_id NULLS FIRST, p.id NULLS FIRST
LIMIT :limit
