-- Are the partitions spread evenly, and does every member have some?
--
-- One row per group, by its last assignment, uneven ones first. IDLE: some members have no partition, because there are more members than
-- partitions or because they subscribe to other topics. SKEWED: the busiest member has at least twice as many partitions as the least busy
-- one, and at least three more. Groups with members of the consumer protocol are left out: no SyncGroup has their partitions. Needs
-- kafka-request.log: the coordinator log does not name partitions. Workers of Connect are left out, too: their tasks differ in weight.
--
-- :cluster :group :since :until :limit = 20

WITH synced AS (
  SELECT e.cluster, e.group_id, e.generation, e.occurred_at, explode(e.assignments) AS own
  FROM group_events AS e
  WHERE e.kind = 'SYNC_GROUP'
    AND e.error_code = 0
    AND in_scope(e.occurred_at)
),
assigned AS (
  SELECT
    s.cluster, s.group_id, s.generation, s.own.member_id AS member_id,
    max(size(s.own.partitions)) AS partitions,
    max(s.occurred_at) AS occurred_at
  FROM synced AS s
  LEFT JOIN member_sessions AS r  -- a static member that came back within the generation
    ON r.cluster = s.cluster AND r.group_id = s.group_id AND r.member_id = s.own.member_id AND r.end_kind = 'REPLACED'
  WHERE s.own.partitions IS NOT NULL AND s.own.config_offset IS NULL AND r.member_id IS NULL
  GROUP BY s.cluster, s.group_id, s.generation, s.own.member_id
),
newest AS (
  SELECT a.*, max(a.generation) OVER (PARTITION BY a.cluster, a.group_id) AS last_generation
  FROM assigned AS a
),
epochs AS (
  SELECT e.cluster, e.group_id, max(e.answer_generation) AS epoch
  FROM group_events AS e
  WHERE e.kind = 'CONSUMER_GROUP_HEARTBEAT' AND in_scope(e.occurred_at)
  GROUP BY e.cluster, e.group_id
),
named AS (
  SELECT n.cluster, n.group_id, n.generation, n.member_id, n.partitions, n.occurred_at, m.client_id
  FROM newest AS n
  LEFT JOIN arrivals AS m ON m.cluster = n.cluster AND m.group_id = n.group_id AND m.member_id = n.member_id
  LEFT JOIN epochs AS x ON x.cluster = n.cluster AND x.group_id = n.group_id
  WHERE n.generation = n.last_generation AND n.generation > coalesce(x.epoch, -1)
),
summed AS (
  SELECT
    d.cluster, d.group_id, d.generation,
    max(d.occurred_at) AS occurred_at,
    count(*) AS members,
    CAST(sum(d.partitions) AS BIGINT) AS partitions,
    min(d.partitions) AS least,
    max(d.partitions) AS most,
    count(*) FILTER (WHERE d.partitions = 0) AS idle
  FROM named AS d
  GROUP BY d.cluster, d.group_id, d.generation
)
SELECT
  s.cluster,
  s.group_id,
  CASE
    WHEN s.idle > 0 AND s.partitions > 0 THEN 'IDLE'
    WHEN s.most >= 2 * s.least AND s.most - s.least >= 3 THEN 'SKEWED'
    ELSE 'EVEN'
  END AS verdict,
  s.members,
  s.partitions,
  s.least,
  s.most,
  s.idle,
  min(CASE WHEN d.partitions = s.most THEN d.client_id END) AS busiest_client_id,
  s.generation,
  s.occurred_at AS assigned_at
FROM summed AS s
JOIN named AS d ON d.cluster = s.cluster AND d.group_id = s.group_id
GROUP BY s.cluster, s.group_id, s.members, s.partitions, s.least, s.most, s.idle, s.generation, s.occurred_at
ORDER BY
  CASE WHEN s.idle > 0 AND s.partitions > 0 THEN 0 WHEN s.most >= 2 * s.least AND s.most - s.least >= 3 THEN 1 ELSE 2 END,
  s.most - s.least DESC, s.cluster, s.group_id
LIMIT :limit
