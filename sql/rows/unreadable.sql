SELECT x.cluster, count(*) AS lines, min(x.origin || ':' || x.position || ', ' || x.reason) AS one FROM quarantine AS x
WHERE ($cluster IS NULL OR x.cluster = $cluster) AND (x.occurred_at IS NULL OR x.occurred_at BETWEEN $since AND $until)
GROUP BY ALL ORDER BY ALL
