-- Rebalances with an id that is a hash of their content: the same logs give the same ids.
SELECT
  'r' || left(md5(
    r.cluster || '|' || r.group_id || '|' || CAST(unix_millis(r.started_at) AS STRING) || '|'
    || CAST(unix_millis(r.ended_at) AS STRING) || '|' || coalesce(CAST(r.generation AS STRING), '')
  ), 11) AS id,
  r.*
FROM rebalances AS r
