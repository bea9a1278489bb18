SELECT
  e.cluster, e.broker, e.occurred_at, e.kind, e.origin, e.position, NULL AS stopped_at, NULL AS started_at, false AS clean
FROM group_events AS e
LEFT JOIN (
  SELECT x.cluster, x.origin
  FROM group_events AS x
  WHERE x.source IN ('coordinator', 'request', 'broker')
  GROUP BY x.cluster, x.origin
  HAVING count(DISTINCT x.broker) > 1
) AS shared ON shared.cluster = e.cluster AND shared.origin = e.origin
WHERE e.kind = 'BROKER_UNCLEAN' AND shared.origin IS NULL
ORDER BY e.occurred_at, e.cluster, e.broker, e.origin, e.position
