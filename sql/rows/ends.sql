SELECT x.cluster, x.broker, max(x.occurred_at) AS last_at FROM group_events AS x
WHERE x.source = 'clock' AND x.broker <> 'clients' AND ($cluster IS NULL OR x.cluster = $cluster) GROUP BY ALL ORDER BY ALL
