-- Brokers that found, when they started, that they had not been shut down cleanly: a line each. When they went, that does not say. In a file
-- that several brokers wrote such a line may be about any of them.
SELECT e.cluster, e.broker, e.occurred_at, e.kind, e.origin, e.position
FROM group_events AS e
WHERE e.kind = 'BROKER_UNCLEAN' AND NOT EXISTS (
  SELECT 1 FROM group_events AS x
  WHERE x.cluster = e.cluster AND x.origin = e.origin AND x.broker <> e.broker AND x.source IN ('coordinator', 'request', 'broker')
)
