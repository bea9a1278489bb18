-- Which rebalances happened, and what did each cost?
--
-- One row per rebalance, the newest first. `cause` and `culprit` are those that `why` names. Where a finding explains the rebalance, the
-- culprit is a broker that was lost or held up, or a client that timed out or joined late while all waited for it. `began_with` and the
-- client then say what set the rebalance off: after a move, a member that rejoined or whose session ran out. `rebalance evidence ID`
-- shows the lines that prove it. A row with `waits_for` is provisional: `waits_for` names lines still to come, which may correct the row.
-- STARTUP is the first rebalance of a group that was new or empty.
--
-- :cluster :group
-- :client  only what this client.id began or caused
-- :cause   only this cause, such as MEMBER_LEFT
-- :since :until :limit = 50

SELECT
  r.id,
  r.started_at,
  r.cluster,
  r.group_id,
  r.generation,
  r.blamed AS cause,
  coalesce(r.culprit_broker, r.culprit_client_id, r.culprit_member_id) AS culprit,
  r.began_with,
  r.client_id,
  r.client_host,
  r.member_id,
  r.join_ms,
  r.sync_ms,
  r.total_ms,
  r.outcome,
  r.members_before,
  r.members_after,
  r.partitions_moved,
  r.unavailable_partition_ms,
  r.reason,
  r.waits_for
FROM rebalances_with_culprit AS r
WHERE in_scope(r.started_at)
  AND (:client IS NULL OR r.client_id = :client OR r.culprit_client_id = :client)
  AND (:cause IS NULL OR r.cause = :cause OR r.blamed = :cause)
ORDER BY r.started_at DESC, r.cluster, r.group_id, r.generation NULLS LAST, r.id
LIMIT :limit
