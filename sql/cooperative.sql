-- How many rounds do cooperative rebalances take?
--
-- One row per rebalance of a group that has a cooperative assignor or has had a second round, as groups of Kafka Connect and Kafka
-- Streams have. The most rounds come first. `rounds` includes the rebalances that followed within `gap_ms` and changed no member. One or
-- two rounds are normal: the second assigns what the first revoked. ENDLESS: `endless` rounds or more, the last one less than `gap_ms`
-- ago. Members revoke again and again, usually because their subscriptions or versions differ. ENDED: as many rounds, but then the group
-- rested for `gap_ms`, or another change began the next rebalance.
--
-- :cluster :group :since :until
-- :gap_ms = 60000  longest pause between two rounds, ms
-- :endless = 4     from so many rounds on ENDLESS
-- :limit = 20

WITH cooperative AS (
  SELECT r.cluster, r.group_id
  FROM rebalances_now AS r
  WHERE lower(r.protocol) LIKE '%cooperative%' OR r.cause = 'REVOCATION_FOLLOW_UP'
  GROUP BY r.cluster, r.group_id
),
rounds AS (
  SELECT
    r.id, r.cluster, r.group_id, r.started_at, r.ended_at, r.total_ms, r.unavailable_partition_ms, r.partitions_moved,
    r.blamed AS cause, r.culprit_client_id AS client_id,
    CASE
      WHEN r.cause IN ('REVOCATION_FOLLOW_UP', 'LEADER_REJOINED', 'MEMBER_REJOINED')
        AND coalesce(size(r.joined), 0) = 0
        AND coalesce(size(r.left), 0) = 0
        AND unix_millis(r.started_at) - unix_millis(lag(r.ended_at) OVER (
          PARTITION BY r.cluster, r.group_id ORDER BY r.started_at, r.ended_at, r.id
        )) <= :gap_ms THEN 0
      ELSE 1
    END AS first
  FROM rebalances_with_culprit AS r
  JOIN cooperative AS c ON c.cluster = r.cluster AND c.group_id = r.group_id
  WHERE in_scope(r.started_at)
),
numbered AS (
  SELECT
    s.*,
    sum(s.first) OVER (
      PARTITION BY s.cluster, s.group_id ORDER BY s.started_at, s.ended_at, s.id ROWS UNBOUNDED PRECEDING
    ) AS series
  FROM rounds AS s
),
placed AS (
  SELECT
    n.*,
    row_number() OVER (PARTITION BY n.cluster, n.group_id, n.series ORDER BY n.started_at, n.ended_at, n.id) AS place,
    max(n.series) OVER (PARTITION BY n.cluster, n.group_id) > n.series AS is_followed
  FROM numbered AS n
)
SELECT
  p.cluster,
  p.group_id,
  min(p.started_at) AS started_at,
  max(CASE WHEN p.place = 1 THEN p.cause END) AS cause,
  max(CASE WHEN p.place = 1 THEN p.client_id END) AS client_id,
  count(*) AS rounds,
  known_sum(p.total_ms) AS total_ms,
  known_sum(p.partitions_moved) AS partitions_moved,
  known_sum(p.unavailable_partition_ms) AS unavailable_partition_ms,
  at_least(p.total_ms, p.partitions_moved, p.unavailable_partition_ms) AS at_least,
  CASE
    WHEN count(*) < :endless THEN 'NORMAL'
    WHEN bool_or(p.is_followed) OR unix_millis(:until) - unix_millis(max(p.ended_at)) > :gap_ms THEN 'ENDED'
    ELSE 'ENDLESS'
  END AS verdict,
  max(CASE WHEN p.place = 1 THEN p.id END) AS first_id
FROM placed AS p
GROUP BY p.cluster, p.group_id, p.series
ORDER BY rounds DESC, started_at DESC, p.cluster, p.group_id
LIMIT :limit
