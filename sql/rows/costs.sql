-- What rebalances cost each group since $since, start-ups by themselves. One that is open belongs to that time however long ago it began.
WITH own AS (
    SELECT cluster, group_id, total_ms AS rebalancing_ms, startup, unavailable_partition_ms, blamed,
           started_at >= $since OR outcome = 'OPEN' AND ended_at >= $since AS counts
    FROM rebalances_with_culprit
    WHERE ($cluster IS NULL OR cluster = $cluster) AND ($group IS NULL OR group_id = $group) AND started_at <= $until
),
causes AS (
    SELECT cluster, group_id, blamed AS cause,
           row_number() OVER (
               PARTITION BY cluster, group_id
               ORDER BY costliest(unavailable_partition_ms, rebalancing_ms, blamed)
           ) AS place
    FROM own WHERE counts AND NOT startup GROUP BY cluster, group_id, blamed
),
sums AS (
    SELECT cluster, group_id, startup, count(*) rebalances, known_sum(rebalancing_ms) rebalancing_ms,
           known_sum(unavailable_partition_ms) unavailable_partition_ms,
           at_least(rebalancing_ms, unavailable_partition_ms) AS at_least
    FROM own WHERE counts GROUP BY cluster, group_id, startup
)
SELECT o.cluster, o.group_id,
       coalesce(r.rebalances, 0) rebalances, CASE WHEN r.rebalances IS NULL THEN 0 ELSE r.rebalancing_ms END rebalancing_ms,
       coalesce(s.rebalances, 0) startups, CASE WHEN s.rebalances IS NULL THEN 0 ELSE s.rebalancing_ms END startup_ms,
       r.unavailable_partition_ms, c.cause worst_cause,
       nullif(concat_ws(', ', r.at_least, CASE WHEN s.at_least LIKE 'rebalancing_ms%' THEN 'startup_ms' END), '') at_least
FROM (SELECT DISTINCT cluster, group_id FROM own) AS o
LEFT JOIN sums AS r ON r.cluster = o.cluster AND r.group_id = o.group_id AND NOT r.startup
LEFT JOIN sums AS s ON s.cluster = o.cluster AND s.group_id = o.group_id AND s.startup
LEFT JOIN causes AS c ON c.cluster = o.cluster AND c.group_id = o.group_id AND c.place = 1
