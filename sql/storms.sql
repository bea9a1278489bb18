-- Which groups rebalance in storms?
--
-- One row per storm, the longest series first: at least `least` rebalances of one group without a pause of `gap_ms`
-- between them. As in the finding REBALANCE_STORM, neither the start-up of the group nor the first join after it is part
-- of a series that begins with them, and a rebalance that a broker caused is part of none. Else all count here, also those
-- that clients did not begin by themselves: follow-ups, and changes of Connect. `busy_percent` is the share of
-- that time which the group spent rebalancing. `cause` is the most frequent one, `client_id` the culprit of most of them. `first_id`
-- names the first rebalance of the storm.
--
-- :cluster         only this cluster
-- :group           only this consumer group
-- :since           from this time on
-- :until           up to this time
-- :gap_ms = 60000  a pause that ends a storm, ms
-- :least = 5       rebalances that make a storm
-- :limit = 20      rows at most

WITH spaced AS (
  SELECT
    r.id, r.cluster, r.group_id, r.started_at, r.ended_at, r.total_ms, r.unavailable_partition_ms, r.cause,
    r.culprit_client_id AS client_id, r.startup,
    CASE
      WHEN unix_millis(r.started_at) - unix_millis(lag(r.ended_at) OVER (
        PARTITION BY r.cluster, r.group_id ORDER BY r.started_at, r.ended_at, r.id
      )) < :gap_ms THEN 0
      ELSE 1
    END AS first
  FROM rebalances_with_culprit AS r
  WHERE r.blamed NOT IN ('COORDINATOR_MOVED', 'ASSIGNMENT_NOT_STORED')
    AND (:cluster IS NULL OR r.cluster = :cluster)
    AND (:group IS NULL OR r.group_id = :group)
    AND r.started_at >= :since
    AND r.started_at <= :until
),
numbered AS (
  SELECT
    s.*,
    sum(s.first) OVER (
      PARTITION BY s.cluster, s.group_id ORDER BY s.started_at, s.ended_at, s.id ROWS UNBOUNDED PRECEDING
    ) AS series
  FROM spaced AS s
),
begun AS (
  SELECT n.*, row_number() OVER (PARTITION BY n.cluster, n.group_id, n.series ORDER BY n.started_at, n.ended_at, n.id) AS number
  FROM numbered AS n
),
stormy AS (
  SELECT
    b.*,
    max(CASE WHEN b.number = 1 AND b.startup THEN 1 ELSE 0 END) OVER (PARTITION BY b.cluster, b.group_id, b.series) AS startups
  FROM begun AS b
),
counted AS (
  SELECT
    s.*,
    count(*) OVER (PARTITION BY s.cluster, s.group_id, s.series, s.cause) AS of_cause,
    count(*) OVER (PARTITION BY s.cluster, s.group_id, s.series, s.client_id) AS of_client
  FROM stormy AS s
  WHERE s.number > s.startups
    AND (s.number > s.startups + 1 OR s.cause <> 'MEMBER_JOINED')
),
ranked AS (
  SELECT
    c.*,
    row_number() OVER (PARTITION BY c.cluster, c.group_id, c.series ORDER BY c.started_at, c.ended_at, c.id) AS place,
    row_number() OVER (PARTITION BY c.cluster, c.group_id, c.series ORDER BY c.of_cause DESC, c.cause) AS cause_place,
    row_number() OVER (
      PARTITION BY c.cluster, c.group_id, c.series
      ORDER BY CASE WHEN c.client_id IS NULL THEN 0 ELSE c.of_client END DESC, c.client_id NULLS LAST
    ) AS client_place
  FROM counted AS c
)
SELECT
  k.cluster,
  k.group_id,
  min(k.started_at) AS started_at,
  max(k.ended_at) AS ended_at,
  count(*) AS rebalances,
  CAST(sum(k.total_ms) AS BIGINT) AS total_ms,
  CAST(round(
    100 * CAST(sum(k.total_ms) AS DOUBLE) / greatest(unix_millis(max(k.ended_at)) - unix_millis(min(k.started_at)), 1)
  ) AS INT) AS busy_percent,
  CAST(sum(k.unavailable_partition_ms) AS BIGINT) AS unavailable_partition_ms,
  max(CASE WHEN k.cause_place = 1 THEN k.cause END) AS cause,
  max(CASE WHEN k.client_place = 1 THEN k.client_id END) AS client_id,
  max(CASE WHEN k.place = 1 THEN k.id END) AS first_id
FROM ranked AS k
GROUP BY k.cluster, k.group_id, k.series
HAVING count(*) >= :least
ORDER BY rebalances DESC, started_at DESC, k.cluster, k.group_id
LIMIT :limit
