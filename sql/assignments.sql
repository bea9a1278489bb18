-- Which partitions did each member have?
--
-- One row per generation (consumer protocol: member epoch) and member, the newest first: the last assignment that the member got in it.
-- `partitions` counts its partitions, `names` lists them; both are null where the assignment could not be decoded. In the consumer
-- protocol partitions have the ids of their topics. Needs kafka-request.log, or records or polls.
--
-- :cluster :group :member :since :until :limit = 100

WITH given AS (
  SELECT
    e.cluster, e.group_id, coalesce(e.answer_generation, e.generation) AS generation, e.occurred_at, e.source,
    explode(e.assignments) AS own
  FROM group_events AS e
  WHERE coalesce(e.error_code, 0) = 0
    AND in_scope(e.occurred_at)
    AND size(e.assignments) > 0
),
placed AS (
  SELECT
    g.cluster, g.group_id, g.generation, g.own.member_id AS member_id, g.own.partitions AS names, g.occurred_at,
    row_number() OVER (
      PARTITION BY g.cluster, g.group_id, g.generation, g.own.member_id
      ORDER BY CASE WHEN g.own.partitions IS NULL THEN 1 ELSE 0 END, g.occurred_at DESC, g.source, array_join(g.own.partitions, ' ')
    ) AS place
  FROM given AS g
)
SELECT
  p.cluster,
  p.group_id,
  p.generation,
  m.client_id,
  m.client_host,
  p.member_id,
  p.occurred_at AS assigned_at,
  size(p.names) AS partitions,
  array_join(p.names, ' ') AS names
FROM placed AS p
LEFT JOIN arrivals AS m ON m.cluster = p.cluster AND m.group_id = p.group_id AND m.member_id = p.member_id
WHERE p.place = 1 AND (:member IS NULL OR position(:member IN p.member_id) > 0)
ORDER BY p.cluster, p.group_id, p.generation DESC NULLS LAST, p.member_id
LIMIT :limit
