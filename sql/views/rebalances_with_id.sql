-- Rebalances with an id that is a hash of their content: the same logs give the same ids. One that is open has no end yet. `from_empty`: the first rebalance of a group
-- that was new or empty. It takes no partition from anybody.
SELECT
  'r' || left(md5(
    r.cluster || '|' || r.group_id || '|' || CAST(unix_millis(r.started_at) AS STRING) || '|'
    || CASE WHEN r.outcome = 'OPEN' THEN '' ELSE CAST(unix_millis(r.ended_at) AS STRING) END || '|' || coalesce(CAST(r.generation AS STRING), '')
  ), 11) AS id,
  coalesce(r.cause = 'MEMBER_JOINED' AND r.members_before = 0 AND r.outcome = 'COMPLETED', false) AS from_empty,
  r.*
FROM rebalances_now AS r
