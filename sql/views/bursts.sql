-- Storms and rolling restarts, as the findings about them tell: from the start of the first rebalance to that of the last, with what they cost.
SELECT
  f.id, f.cluster, f.group_id, f.code, f.client_id, f.occurred_at AS started_at,
  timestamp_millis(unix_millis(f.occurred_at) + CAST(get_json_object(f.details, '$.span_ms') AS BIGINT)) AS last_at,
  CAST(get_json_object(f.details, '$.rebalances') AS BIGINT) AS rebalances,
  CAST(get_json_object(f.details, '$.total_ms') AS BIGINT) AS total_ms,
  CAST(get_json_object(f.details, '$.unavailable_partition_ms') AS BIGINT) AS unavailable_partition_ms,
  get_json_object(f.details, '$.at_least') AS at_least,
  get_json_object(f.details, '$.restarted') AS restarted
FROM findings_with_id AS f
WHERE f.code IN ('ROLLING_RESTART', 'REBALANCE_STORM')
