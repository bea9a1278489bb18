-- Findings with an id that is a hash of their content: the same logs give the same ids.
SELECT
  'f' || left(md5(
    f.cluster || '|' || f.group_id || '|' || CAST(unix_millis(f.occurred_at) AS STRING) || '|' || f.code || '|'
    || coalesce(f.member_id, '') || '|' || coalesce(CAST(f.generation AS STRING), '')
  ), 11) AS id,
  f.*
FROM findings AS f
