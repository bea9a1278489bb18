-- Signs that brokers went away, and BROKER_UNCLEAN: one that starts finds that it had not been shut down cleanly. When it went, that does not
-- say. In a file that several brokers wrote such a line may be about any of them.
WITH signs AS (
  SELECT d.cluster, d.broker, d.occurred_at, d.kind, d.origin, d.position, d.stopped_at, d.started_at, d.clean
  FROM broker_departures AS d
  UNION ALL
  SELECT e.cluster, e.broker, e.occurred_at, e.kind, e.origin, e.position, NULL, NULL, false
  FROM group_events AS e
  WHERE e.kind = 'BROKER_UNCLEAN' AND NOT EXISTS (
    SELECT 1 FROM group_events AS x
    WHERE x.cluster = e.cluster AND x.origin = e.origin AND x.broker <> e.broker AND x.source IN ('coordinator', 'request', 'broker')
  )
)
SELECT * FROM signs WHERE $cluster IS NULL OR cluster = $cluster
ORDER BY occurred_at, cluster, broker, kind, origin, position
