-- Memberships with an id that is a hash of their content: the same logs give the same ids.
SELECT
  's' || left(md5(
    s.cluster || '|' || s.group_id || '|' || s.member_id || '|' || CAST(unix_millis(s.ended_at) AS STRING) || '|' || s.end_kind
  ), 11) AS id,
  s.*
FROM member_sessions AS s
