-- Signs that brokers went away, and that one found, when it started, that it had not been shut down cleanly: with the last line before
-- that shows it alive (`heard_at`), and the first one after it (`again_at`).
WITH signs AS (
  SELECT d.cluster, d.broker, d.occurred_at, d.kind, d.origin, d.position, d.stopped_at, d.started_at, d.clean, NULL AS heard_at, NULL AS again_at
  FROM broker_departures AS d
  UNION ALL
  SELECT u.cluster, u.broker, u.occurred_at, u.kind, u.origin, u.position, NULL, NULL, false,
         max(CASE WHEN e.last_at < u.occurred_at THEN e.last_at WHEN e.occurred_at < u.occurred_at THEN e.occurred_at END),
         min(CASE WHEN e.occurred_at > u.occurred_at THEN e.occurred_at END)
  FROM unclean_starts AS u
  LEFT JOIN group_events AS e ON e.cluster = u.cluster AND e.broker = u.broker
    AND (e.source IN ('coordinator', 'request') OR e.kind = 'BROKER_STARTED')
  GROUP BY ALL
)
SELECT * FROM signs WHERE $cluster IS NULL OR cluster = $cluster
ORDER BY occurred_at, cluster, broker, kind, origin, position
