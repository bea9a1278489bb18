-- Which partitions did each member have?
--
-- One row per generation (consumer protocol: member epoch) and member, the newest first: the last assignment that the member got in it.
-- `partitions` counts its partitions, `names` lists them; both are null where the assignment could not be decoded. In the consumer
-- protocol requests have the ids of topics: these get their names where an answer to METADATA or a poll tells them. Of a worker of Connect
-- they are tasks, and `names` has its connectors, too; one that is told changes alone is left out. Needs kafka-request.log, or records or
-- polls.
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
  WHERE g.own.revoked IS NULL
),
topics AS (
  SELECT
    o.cluster, o.part.topic_id AS id,
    min(CASE o.kind WHEN 'TOPIC_NAMED' THEN o.part.partition ELSE regexp_replace(o.part.partition, '-[0-9]+$', '') END) AS topic
  FROM (
    SELECT e.cluster, e.kind, explode(e.offsets) AS part
    FROM group_events AS e
    WHERE size(e.offsets) > 0 AND e.kind IN ('TOPIC_NAMED', 'OFFSETS_POLLED')
  ) AS o
  WHERE o.part.topic_id <> ''
  GROUP BY o.cluster, o.part.topic_id
),
numbered AS (
  SELECT
    s.cluster, s.group_id, s.generation, s.member_id, regexp_replace(s.name, '-[0-9]+$', '') AS id,
    CAST(nullif(regexp_extract(s.name, '([0-9]+)$', 1), '') AS INT) AS number  -- connectors have none
  FROM (SELECT p.*, explode(p.names) AS name FROM placed AS p WHERE p.place = 1) AS s
),
counted AS (
  SELECT n.cluster, n.group_id, n.generation, n.member_id, count(n.number) AS partitions
  FROM numbered AS n
  GROUP BY n.cluster, n.group_id, n.generation, n.member_id
),
of_topics AS (
  SELECT
    x.cluster, x.group_id, x.generation, x.member_id, t.topic IS NOT NULL AS told, coalesce(t.topic, x.id) AS topic,
    array_sort(array_agg(x.number)) AS numbers
  FROM numbered AS x
  LEFT JOIN topics AS t ON t.cluster = x.cluster AND t.id = x.id
  GROUP BY x.cluster, x.group_id, x.generation, x.member_id, x.id, t.topic
),
told AS (
  SELECT
    o.cluster, o.group_id, o.generation, o.member_id,
    array_join(array_sort(array_agg(replace('/' || array_join(o.numbers, ' /'), '/', o.topic || '-'))), ' ') AS names
  FROM of_topics AS o
  GROUP BY o.cluster, o.group_id, o.generation, o.member_id
  HAVING bool_or(o.told)
)
SELECT
  p.cluster,
  p.group_id,
  p.generation,
  m.client_id,
  m.client_host,
  p.member_id,
  p.occurred_at AS assigned_at,
  CASE WHEN p.names IS NOT NULL THEN CAST(coalesce(c.partitions, 0) AS INT) END AS partitions,
  coalesce(n.names, array_join(p.names, ' ')) AS names
FROM placed AS p
LEFT JOIN told AS n ON n.cluster = p.cluster AND n.group_id = p.group_id AND n.member_id = p.member_id
  AND coalesce(n.generation, -1) = coalesce(p.generation, -1)
LEFT JOIN counted AS c ON c.cluster = p.cluster AND c.group_id = p.group_id AND c.member_id = p.member_id
  AND coalesce(c.generation, -1) = coalesce(p.generation, -1)
LEFT JOIN arrivals AS m ON m.cluster = p.cluster AND m.group_id = p.group_id AND m.member_id = p.member_id
WHERE p.place = 1 AND (:member IS NULL OR position(:member IN p.member_id) > 0)
ORDER BY p.cluster, p.group_id, p.generation DESC NULLS LAST, p.member_id
LIMIT :limit
