-- `logs_end_at`: of brokers' logs where there are any. Clients' logs may go on elsewhere, or have another zone than they were read with.
SELECT cluster, list_sort(list(DISTINCT broker)) sources, min(occurred_at) first_at, max(occurred_at) last_at,
       coalesce(max(occurred_at) FILTER (broker <> 'clients'), max(occurred_at)) logs_end_at
FROM group_events WHERE kind <> 'end' AND ($cluster IS NULL OR cluster = $cluster) GROUP BY cluster ORDER BY cluster
