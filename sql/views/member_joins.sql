-- Lines that show that a member came, with what they tell of it and its client.
SELECT
  e.cluster, e.group_id, e.client_host, e.software, e.session_timeout_ms, e.rebalance_timeout_ms, e.received_at,
  nullif(e.instance_id, '') AS instance_id,
  nullif(e.client_id, '') AS client_id,
  coalesce(nullif(e.answer_member_id, ''), e.member_id) AS member_id
FROM group_events AS e
WHERE e.group_id <> ''
  AND coalesce(nullif(e.answer_member_id, ''), e.member_id) <> ''
  AND (
    (e.kind = 'JOIN_GROUP' AND e.error_code = 0)
    OR (e.kind IN ('CONSUMER_GROUP_HEARTBEAT', 'SHARE_GROUP_HEARTBEAT', 'STREAMS_GROUP_HEARTBEAT') AND e.error_code = 0 AND e.generation = 0)
    OR e.kind = 'MEMBER_ADDED'
    OR (e.kind = 'CONSUMER_GROUP_LOG' AND e.state IN ('JOINED', 'RETURNED'))
  )
