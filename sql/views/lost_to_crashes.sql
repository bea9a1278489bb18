-- Groups of which no line shows who has them since their coordinator crashed: that broker, and when it had started again and found so. A
-- group that was removed, or given up before, is none of them.
WITH served AS (
  SELECT e.cluster, e.group_id, e.broker, max(greatest(e.occurred_at, coalesce(e.last_at, e.occurred_at))) AS until
  FROM group_events AS e
  JOIN (SELECT DISTINCT u.cluster FROM unclean_starts AS u) AS c ON c.cluster = e.cluster
  WHERE e.group_id <> '' AND e.broker <> 'clients' AND e.kind NOT IN (
      'FIND_COORDINATOR', 'GROUP_UNLOADED', 'MEMBER_LOADED', 'SHARE_FETCH', 'SHARE_ACKNOWLEDGE'
    )
    AND coalesce(e.state, '') <> 'GIVEN_UP' AND coalesce(e.error_code, 0) NOT IN (7, 14, 15, 16)
  GROUP BY e.cluster, e.group_id, e.broker
),
last_states AS (
  SELECT t.cluster, t.group_id, max_by(
    t.to_state, 4 * unix_millis(t.occurred_at) + CASE WHEN t.trigger = 'GROUP_LOADED' THEN 2 WHEN t.to_state = 'Dead' THEN 1 ELSE 0 END
  ) AS state
  FROM group_transitions AS t
  GROUP BY t.cluster, t.group_id
)
SELECT s.cluster, s.group_id, s.broker, min(u.occurred_at) AS since
FROM served AS s
JOIN unclean_starts AS u ON u.cluster = s.cluster AND u.broker = s.broker AND u.occurred_at > s.until
LEFT JOIN last_states AS t ON t.cluster = s.cluster AND t.group_id = s.group_id
WHERE (t.state IS NULL OR t.state <> 'Dead') AND NOT EXISTS (
  SELECT 1 FROM served AS o
  WHERE o.cluster = s.cluster AND o.group_id = s.group_id AND o.broker <> s.broker AND o.until >= s.until
)
GROUP BY s.cluster, s.group_id, s.broker
