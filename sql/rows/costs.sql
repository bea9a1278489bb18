-- What rebalances cost each group since $since, start-ups by themselves. One that is open belongs to that time however long ago it began.
WITH own AS (
    SELECT cluster, group_id, started_at, total_ms, startup, unavailable_partition_ms, blamed,
           started_at >= $since OR outcome = 'OPEN' AND ended_at >= $since AS counts
    FROM rebalances_with_culprit
    WHERE ($cluster IS NULL OR cluster = $cluster) AND ($group IS NULL OR group_id = $group) AND started_at <= $until
),
causes AS (
    SELECT cluster, group_id, blamed AS cause,
           row_number() OVER (PARTITION BY cluster, group_id ORDER BY sum(coalesce(total_ms, 0)) DESC, blamed) AS place
    FROM own WHERE counts AND NOT startup GROUP BY cluster, group_id, blamed
)
SELECT o.cluster, o.group_id,
       count(*) FILTER (o.counts AND NOT o.startup) rebalances,
       coalesce(sum(o.total_ms) FILTER (o.counts AND NOT o.startup), 0)::BIGINT rebalancing_ms,
       count(*) FILTER (o.counts AND o.startup) startups,
       coalesce(sum(o.total_ms) FILTER (o.counts AND o.startup), 0)::BIGINT startup_ms,
       nullif(sum(o.unavailable_partition_ms) FILTER (o.counts AND NOT o.startup), CASE WHEN bool_or(o.unavailable_partition_ms IS NULL)
              FILTER (o.counts AND NOT o.startup) THEN 0 END)::BIGINT unavailable_partition_ms,
       any_value(c.cause) worst_cause
FROM own AS o LEFT JOIN causes AS c ON c.cluster = o.cluster AND c.group_id = o.group_id AND c.place = 1
GROUP BY o.cluster, o.group_id
