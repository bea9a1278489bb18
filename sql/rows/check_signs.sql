WITH silent AS (
    SELECT id, cluster, group_id, member_id, occurred_at, evidence ->> '$[0].origin' AS origin
    FROM findings_with_id WHERE code = 'SESSION_TIMEOUT'
),
brokers AS (SELECT DISTINCT cluster, origin, broker FROM group_events)
SELECT s.id, s.cluster, s.group_id, s.member_id, e.received_at, e.last_at
FROM silent AS s JOIN brokers AS b ON b.cluster = s.cluster AND b.origin = s.origin
JOIN group_events AS e
  ON e.cluster = s.cluster AND e.group_id = s.group_id AND e.member_id = s.member_id AND e.broker = b.broker
WHERE e.source = 'request' AND e.received_at <= s.occurred_at AND (
    e.kind = 'HEARTBEAT' AND e.error_code IN (0, 27) OR e.kind = 'OFFSET_COMMIT' AND e.error_code = 0 AND e.generation >= 0
)
