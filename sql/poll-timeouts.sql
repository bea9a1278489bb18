-- Which application did not poll within max.poll.interval.ms?
--
-- One row per such stall, the newest first. CERTAIN: a finding POLL_TIMEOUT. The client gave this reason (Java 3.2 and later), or its
-- requests or its own log prove it. LIKELY: a member left without a reason and rejoined on the same connection, as Java does after its
-- poll timeout in the consumer protocol (KIP-848). An application that unsubscribes and subscribes again looks the same. Only
-- kafka-request.log shows LIKELY ones. SAID: the client's own log says so, and no finding is about this member: the coordinator was not
-- told, or nothing had come of it when the lines end. `away_ms` is how long the member was out of the group. A static member that stalls
-- does not leave: it falls silent. `rebalance_total_ms` is the time of the rebalances that are blamed on the member, as in `why`. `id` is
-- that of the finding, or of the membership; null for SAID.
--
-- :cluster :group :client :since :until :limit = 20

WITH departures AS (
  SELECT
    f.cluster, f.group_id, f.member_id, f.client_id, f.client_host, f.occurred_at AS left_at, 'CERTAIN' AS sure,
    CAST(get_json_object(f.details, '$.max_poll_interval_ms') AS BIGINT) AS max_poll_interval_ms, f.id
  FROM findings_with_id AS f
  WHERE f.code = 'POLL_TIMEOUT'
  UNION ALL
  SELECT
    s.cluster, s.group_id, s.member_id, s.client_id, s.client_host, s.ended_at, 'LIKELY', CAST(s.rebalance_timeout_ms AS BIGINT), s.id
  FROM member_sessions_with_id AS s
  WHERE s.end_kind = 'LEFT'
  UNION ALL
  SELECT
    e.cluster, e.group_id, min(a.member_id), e.client_id, min(a.client_host), e.occurred_at, 'SAID',
    CAST(min(a.rebalance_timeout_ms) AS BIGINT), NULL
  FROM group_events AS e
  JOIN arrivals AS a
    ON a.cluster = e.cluster AND a.group_id = e.group_id AND a.client_id = e.client_id AND a.came_at <= e.occurred_at
  LEFT JOIN member_sessions AS s
    ON s.cluster = a.cluster AND s.group_id = a.group_id AND s.member_id = a.member_id
      AND s.ended_at >= a.came_at AND s.ended_at <= e.occurred_at
  LEFT JOIN findings AS f
    ON f.cluster = a.cluster AND f.group_id = a.group_id AND f.member_id = a.member_id
  WHERE e.kind = 'CLIENT_POLL_TIMEOUT' AND s.member_id IS NULL AND f.member_id IS NULL
  GROUP BY e.cluster, e.group_id, e.client_id, e.occurred_at
  HAVING count(DISTINCT a.member_id) = 1
),
leaves AS (
  SELECT e.cluster, e.group_id, e.connection, e.broker, e.member_id, e.received_at, e.occurred_at
  FROM group_events AS e
  WHERE e.kind = 'LEAVE_GROUP' OR (e.kind = 'CONSUMER_GROUP_HEARTBEAT' AND e.generation = -1)
),
joins AS (
  SELECT e.cluster, e.group_id, e.connection, e.broker, e.received_at
  FROM group_events AS e
  WHERE e.kind = 'JOIN_GROUP' OR (e.kind = 'CONSUMER_GROUP_HEARTBEAT' AND e.generation = 0)
),
back AS (
  SELECT d.cluster, d.group_id, d.id, min(j.received_at) AS back_at
  FROM departures AS d
  JOIN leaves AS l
    ON l.cluster = d.cluster AND l.group_id = d.group_id AND l.member_id = d.member_id
      AND unix_millis(l.received_at) <= unix_millis(d.left_at) + 1000
      AND unix_millis(l.occurred_at) >= unix_millis(d.left_at) - 1000
  JOIN joins AS j
    ON j.cluster = d.cluster AND j.group_id = d.group_id AND j.broker = l.broker AND j.connection = l.connection
      AND j.received_at > l.received_at
  GROUP BY d.cluster, d.group_id, d.id
),
caused AS (
  SELECT r.cluster, r.group_id, r.member_id, known_sum(r.rebalance_total_ms) AS rebalance_total_ms, at_least(r.rebalance_total_ms) AS at_least
  FROM (
    SELECT b.cluster, b.group_id, b.culprit_member_id AS member_id, b.total_ms AS rebalance_total_ms
    FROM rebalances_with_culprit AS b
    WHERE b.blamed IN ('POLL_TIMEOUT', 'MEMBER_LEFT')
  ) AS r
  GROUP BY r.cluster, r.group_id, r.member_id
)
SELECT
  d.cluster,
  d.group_id,
  d.left_at,
  d.sure,
  d.client_id,
  d.client_host,
  d.member_id,
  d.max_poll_interval_ms,
  unix_millis(b.back_at) - unix_millis(d.left_at) AS away_ms,
  c.rebalance_total_ms,
  c.at_least,
  d.id
FROM departures AS d
LEFT JOIN back AS b ON b.cluster = d.cluster AND b.group_id = d.group_id AND b.id = d.id
LEFT JOIN caused AS c ON c.cluster = d.cluster AND c.group_id = d.group_id AND c.member_id = d.member_id
WHERE (d.sure <> 'LIKELY' OR b.back_at IS NOT NULL)
  AND in_scope(d.left_at)
  AND (:client IS NULL OR d.client_id = :client)
ORDER BY d.left_at DESC, d.cluster, d.group_id, d.member_id NULLS LAST, d.id
LIMIT :limit
