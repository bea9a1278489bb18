-- Signs that brokers went away, and that one found, when it started, that it had not been shut down cleanly.
WITH signs AS (
  SELECT d.cluster, d.broker, d.occurred_at, d.kind, d.origin, d.position, d.stopped_at, d.started_at, d.clean
  FROM broker_departures AS d
  UNION ALL
  SELECT u.cluster, u.broker, u.occurred_at, u.kind, u.origin, u.position, NULL, NULL, false FROM unclean_starts AS u
)
SELECT * FROM signs WHERE $cluster IS NULL OR cluster = $cluster
ORDER BY occurred_at, cluster, broker, kind, origin, position
