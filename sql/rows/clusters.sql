SELECT cluster, list_sort(list(DISTINCT broker)) brokers,
       min(occurred_at) first_at, max(occurred_at) last_at
FROM group_events WHERE kind <> 'end' AND ($cluster IS NULL OR cluster = $cluster) GROUP BY cluster ORDER BY cluster
