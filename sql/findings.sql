-- What needs attention?
--
-- One row per finding, the newest first. `rebalance evidence ID` shows the lines that prove it. A broker's crash of which
-- no finding tells is one of each of its groups.
--
-- :cluster :group :client
-- :severity  only this severity: ERROR, WARNING or INFO
-- :code      only this code, such as SESSION_TIMEOUT
-- :text      only findings with this in their message or advice, or in the name of their group, client, host or member
-- :since :until :limit = 50

SELECT
  f.id,
  f.occurred_at,
  f.severity,
  f.code,
  f.cluster,
  f.group_id,
  f.client_id,
  f.client_host,
  f.member_id,
  f.generation,
  f.message
FROM findings_with_broker AS f
WHERE in_scope(f.occurred_at)
  AND (:client IS NULL OR f.client_id = :client)
  AND (:severity IS NULL OR f.severity = :severity)
  AND (:code IS NULL OR f.code = :code)
  AND (
    :text IS NULL
    OR position(lower(:text) IN lower(f.message)) > 0
    OR position(lower(:text) IN lower(f.advice)) > 0
    OR position(lower(:text) IN lower(f.group_id)) > 0
    OR position(lower(:text) IN lower(f.client_id)) > 0
    OR position(lower(:text) IN lower(f.client_host)) > 0
    OR position(lower(:text) IN lower(f.member_id)) > 0
  )
ORDER BY f.occurred_at DESC, f.cluster, f.group_id, f.code, f.member_id NULLS LAST, f.id, f.message
LIMIT :limit
