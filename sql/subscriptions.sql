-- Do the members of a group subscribe to different topics, and does the leader rejoin again and again?
--
-- One row per group and set of topics, doubtful groups first. UNEQUAL: current members subscribe to different topics (often two
-- applications with one group.id). CHANGED: all agree now, but did not always. EQUAL: they always agreed. `members` counts those with
-- this set now, `ever` those that had it at some time. `rejoins` counts the group's rebalances because of changed subscriptions or
-- topics, or by its leader. A regular expression of a member of the consumer protocol stands beside its topics. Needs kafka-request.log:
-- the coordinator log does not name topics.
--
-- :cluster :group :since :until :limit = 20

WITH offers AS (
  SELECT
    e.cluster, e.group_id, e.answer_member_id AS member_id, e.client_id, e.received_at, e.broker, e.position,
    nullif(e.subscribed_regex, '') AS regex,
    explode(e.protocols) AS protocol
  FROM group_events AS e
  WHERE e.kind IN ('JOIN_GROUP', 'CONSUMER_GROUP_HEARTBEAT')
    AND e.error_code = 0
    AND (e.kind = 'JOIN_GROUP' OR coalesce(e.generation, 0) >= 0)  -- else it leaves
    AND in_scope(e.received_at)
),
joins AS (
  SELECT
    o.cluster, o.group_id, o.member_id, o.received_at, o.position,
    max(o.client_id) AS client_id,
    max(concat_ws(', ', nullif(array_join(array_sort(o.protocol.topics), ', '), ''), o.regex)) AS topics
  FROM offers AS o
  WHERE o.protocol.topics IS NOT NULL
  GROUP BY o.cluster, o.group_id, o.member_id, o.received_at, o.broker, o.position
),
latest AS (
  SELECT
    j.*,
    row_number() OVER (
      PARTITION BY j.cluster, j.group_id, j.member_id ORDER BY j.received_at DESC, j.position DESC
    ) AS place
  FROM joins AS j
),
present AS (
  SELECT l.cluster, l.group_id, l.member_id, l.topics, l.place = 1 AND s.member_id IS NULL AS now, l.received_at, l.client_id
  FROM latest AS l
  LEFT JOIN (
    SELECT DISTINCT m.cluster, m.group_id, m.member_id FROM member_sessions AS m WHERE m.ended_at <= :until
  ) AS s ON s.cluster = l.cluster AND s.group_id = l.group_id AND s.member_id = l.member_id
),
sets AS (
  SELECT
    p.cluster, p.group_id, p.topics,
    count(DISTINCT CASE WHEN p.now THEN p.member_id END) AS members,
    count(DISTINCT p.member_id) AS ever,
    min(p.client_id) AS client_id,
    min(p.received_at) AS first_at,
    max(p.received_at) AS last_at
  FROM present AS p
  GROUP BY p.cluster, p.group_id, p.topics
),
rejoins AS (
  SELECT r.cluster, r.group_id, count(*) AS rejoins
  FROM rebalances_now AS r
  WHERE r.cause IN ('SUBSCRIPTION_CHANGED', 'METADATA_CHANGED', 'LEADER_REJOINED')
    AND r.started_at >= :since
    AND r.started_at <= :until
  GROUP BY r.cluster, r.group_id
),
judged AS (
  SELECT
    s.*,
    sum(CASE WHEN s.members > 0 THEN 1 ELSE 0 END) OVER (PARTITION BY s.cluster, s.group_id) AS sets_now,
    count(*) OVER (PARTITION BY s.cluster, s.group_id) AS sets_ever
  FROM sets AS s
)
SELECT
  j.cluster,
  j.group_id,
  CASE WHEN j.sets_now > 1 THEN 'UNEQUAL' WHEN j.sets_ever > 1 THEN 'CHANGED' ELSE 'EQUAL' END AS verdict,
  j.topics,
  j.members,
  j.ever,
  j.client_id AS a_client_id,
  j.first_at,
  j.last_at,
  coalesce(r.rejoins, 0) AS rejoins
FROM judged AS j
LEFT JOIN rejoins AS r ON r.cluster = j.cluster AND r.group_id = j.group_id
ORDER BY
  CASE WHEN j.sets_now > 1 THEN 0 WHEN j.sets_ever > 1 THEN 1 ELSE 2 END,
  rejoins DESC, j.cluster, j.group_id, j.members DESC, j.topics
LIMIT :limit
