-- Which partitions does nobody read?
--
-- One row per partition whose committed offset stood still although its log grew and its owner was there, the newest first.
-- PARTITION_NOT_READ: the owner commits other offsets, or this one again. COMMITS_STOPPED: it commits nothing at all, so it does not
-- read, or does not commit what it reads. OPEN_TRANSACTION: it waits for a transaction to end. `records` came meanwhile. It needs the
-- ends of logs (`rebalance poll`) and a request log, or `dump-offsets --commits`.
--
-- :cluster :group :since :until :limit = 50

SELECT
  f.cluster,
  f.group_id,
  get_json_object(f.details, '$.partition') AS partition,
  f.code,
  f.client_id AS owner,
  f.client_host AS owner_host,
  f.occurred_at AS told_at,
  CAST(get_json_object(f.details, '$.offset') AS BIGINT) AS committed_offset,
  CAST(get_json_object(f.details, '$.came') AS BIGINT) AS records,
  CAST(get_json_object(f.details, '$.stands_ms') AS BIGINT) AS stands_ms,
  f.id
FROM findings_with_id AS f
WHERE f.code IN ('PARTITION_NOT_READ', 'COMMITS_STOPPED', 'OPEN_TRANSACTION')
  AND in_scope(f.occurred_at)
ORDER BY f.occurred_at DESC, f.cluster, f.group_id, partition
LIMIT :limit
