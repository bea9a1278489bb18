-- Signs that a broker went away, in the order in which they were logged: a line each. Its own log says that it stops, has failed or has lost
-- its session with ZooKeeper; a follower on another broker loses its connection; the controller takes it for lost. `stopped_at` and
-- `started_at` say when its shutdown was complete and when it was there again, as the next such lines of its own log say; `clean` says what
-- it found when it started: whether it had been shut down cleanly. They are null where no line says so. In a file that several brokers wrote
-- only lines with the id of a node count.
WITH shared AS (
  SELECT e.cluster, e.origin
  FROM group_events AS e
  WHERE e.source IN ('coordinator', 'request', 'broker')
  GROUP BY e.cluster, e.origin
  HAVING count(DISTINCT e.broker) > 1
),
lines AS (
  SELECT e.cluster, e.broker, e.occurred_at, e.kind, e.coordinator_id, e.origin, e.position
  FROM group_events AS e
  LEFT JOIN shared AS x ON x.cluster = e.cluster AND x.origin = e.origin
  WHERE e.source = 'broker' AND (x.origin IS NULL OR e.coordinator_id IS NOT NULL)
),
nodes AS (
  SELECT DISTINCT e.cluster, e.broker, e.coordinator_id AS node
  FROM group_events AS e
  WHERE e.coordinator_id IS NOT NULL
    AND (e.source = 'coordinator' OR (e.source = 'broker' AND e.kind NOT IN ('BROKER_UNREACHABLE', 'BROKER_FENCED')))
),
signs AS (
  SELECT e.cluster, e.broker, e.occurred_at, e.kind, e.origin, e.position
  FROM lines AS e
  WHERE e.kind IN ('BROKER_STOPPING', 'BROKER_FAILED', 'BROKER_EXPIRED')
  UNION
  SELECT e.cluster, n.broker, e.occurred_at, e.kind, e.origin, e.position
  FROM lines AS e
  JOIN nodes AS n ON n.cluster = e.cluster AND n.node = e.coordinator_id
  WHERE e.kind IN ('BROKER_UNREACHABLE', 'BROKER_FENCED')
),
starts AS (
  SELECT s.cluster, s.broker, s.occurred_at, min(e.occurred_at) AS started_at
  FROM signs AS s
  JOIN lines AS e ON e.cluster = s.cluster AND e.broker = s.broker AND e.occurred_at >= s.occurred_at
  WHERE e.kind = 'BROKER_STARTED'
  GROUP BY s.cluster, s.broker, s.occurred_at
),
ends AS (
  SELECT
    s.cluster, s.broker, s.occurred_at,
    min(CASE WHEN e.kind = 'BROKER_STOPPED' THEN e.occurred_at END) AS stopped_at,
    min(CASE e.kind WHEN 'BROKER_CLEAN' THEN 1 WHEN 'BROKER_UNCLEAN' THEN 0 END) AS clean
  FROM signs AS s
  LEFT JOIN starts AS b ON b.cluster = s.cluster AND b.broker = s.broker AND b.occurred_at = s.occurred_at
  JOIN lines AS e ON e.cluster = s.cluster AND e.broker = s.broker AND e.occurred_at >= s.occurred_at
  WHERE e.kind IN ('BROKER_STOPPED', 'BROKER_CLEAN', 'BROKER_UNCLEAN')
    AND (b.started_at IS NULL OR e.occurred_at <= b.started_at)
  GROUP BY s.cluster, s.broker, s.occurred_at
)
SELECT s.cluster, s.broker, s.occurred_at, s.kind, s.origin, s.position, x.stopped_at, b.started_at, x.clean = 1 AS clean
FROM signs AS s
LEFT JOIN starts AS b ON b.cluster = s.cluster AND b.broker = s.broker AND b.occurred_at = s.occurred_at
LEFT JOIN ends AS x ON x.cluster = s.cluster AND x.broker = s.broker AND x.occurred_at = s.occurred_at
