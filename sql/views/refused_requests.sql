-- Requests that were refused since the sender was no member, or not one of that generation: a row for each line, and for each entry of a
-- LeaveGroup, with the member that asked and, where a log shows it, the end of its last membership before. Who has given up its id sends none:
-- that was the last member of its connection (and group) which had gone. `crossed`: a client's last requests may cross its own leave.
WITH refused AS (
  SELECT
    e.cluster, e.group_id, e.broker, e.connection, e.client_id, e.client_host, e.kind, e.error_code, e.generation, e.received_at, e.occurred_at,
    e.lines, e.origin, e.position, coalesce(e.member_id, '') AS sent_id
  FROM group_events AS e
  WHERE e.source = 'request'
    AND (e.error_code IN (22, 25, 82) OR (e.error_code = 27 AND e.kind IN ('OFFSET_COMMIT', 'TXN_OFFSET_COMMIT')))
  UNION ALL
  SELECT
    l.cluster, l.group_id, l.broker, l.connection, l.client_id, l.client_host, l.kind, l.entry.error_code, l.generation, l.received_at,
    l.occurred_at, l.lines, l.origin, l.position, coalesce(l.entry.member_id, '')
  FROM (SELECT e.*, explode(e.members) AS entry FROM group_events AS e WHERE e.kind = 'LEAVE_GROUP' AND e.error_code = 0) AS l
  WHERE l.entry.error_code = 25
),
senders AS (
  SELECT r.*, r.sent_id AS sender_id
  FROM refused AS r
  WHERE r.sent_id <> ''
  UNION
  SELECT r.*, coalesce(nullif(e.answer_member_id, ''), e.member_id)
  FROM refused AS r
  JOIN group_events AS e
    ON e.cluster = r.cluster AND e.group_id = r.group_id AND e.broker = r.broker AND e.connection = r.connection
      AND e.source = 'request' AND e.received_at <= r.received_at
  WHERE r.sent_id = '' AND r.connection <> ''
),
ends AS (
  SELECT
    n.cluster, n.broker, n.origin, n.position, n.sent_id, s.member_id, s.end_kind, s.ended_at, s.id,
    row_number() OVER (
      PARTITION BY n.cluster, n.broker, n.origin, n.position, n.sent_id ORDER BY s.ended_at DESC, s.end_kind, s.member_id
    ) AS place
  FROM senders AS n
  JOIN member_sessions_with_id AS s
    ON s.cluster = n.cluster AND s.group_id = n.group_id AND s.member_id = n.sender_id AND s.ended_at <= n.occurred_at
)
SELECT
  r.cluster, r.group_id, r.client_id, r.client_host, r.kind, r.error_code, r.generation, r.occurred_at, r.lines, r.sent_id,
  coalesce(x.member_id, nullif(r.sent_id, '')) AS member_id, x.end_kind AS removed_by, x.ended_at AS removed_at, x.id AS removed_id,
  coalesce(x.end_kind = 'LEFT' AND r.error_code = 25 AND unix_millis(r.received_at) - unix_millis(x.ended_at) < 10000, FALSE) AS crossed
FROM refused AS r
LEFT JOIN ends AS x
  ON x.cluster = r.cluster AND x.broker = r.broker AND x.origin = r.origin AND x.position = r.position AND x.sent_id = r.sent_id AND x.place = 1
