-- Brokers that found, when they started, that they had crashed: a line each, with the groups of which the last line before it was theirs.
WITH starts AS (
  SELECT u.*, lag(u.occurred_at) OVER (PARTITION BY u.cluster, u.broker ORDER BY u.occurred_at, u.position) AS before FROM unclean_starts AS u
),
served AS (
  SELECT s.cluster, s.broker, s.occurred_at, s.kind, s.origin, s.position, e.group_id
  FROM starts AS s
  JOIN group_events AS e ON e.cluster = s.cluster AND e.occurred_at < s.occurred_at AND (s.before IS NULL OR e.occurred_at > s.before)
  WHERE e.group_id <> '' AND e.source IN ('coordinator', 'request') AND e.kind NOT IN (
      'FIND_COORDINATOR', 'GROUP_UNLOADED', 'MEMBER_LOADED', 'SHARE_FETCH', 'SHARE_ACKNOWLEDGE'
    )
    AND coalesce(e.state, '') <> 'GIVEN_UP' AND coalesce(e.error_code, 0) NOT IN (7, 14, 15, 16)
  GROUP BY ALL HAVING max_by(e.broker, (e.occurred_at, e.broker)) = s.broker
)
SELECT cluster, broker, occurred_at, kind, origin, position, NULL AS stopped_at, NULL AS started_at, false AS clean,
       list(group_id ORDER BY group_id) AS groups
FROM served GROUP BY ALL ORDER BY occurred_at, cluster, broker, position
