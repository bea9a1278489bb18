SELECT * FROM broker_departures WHERE $cluster IS NULL OR cluster = $cluster
ORDER BY occurred_at, cluster, broker, kind, origin, position
