-- What the partitions of a group had behind their committed offsets together, at each poll that saw a change, and at the last poll of all.
-- A poll tells of the partitions that changed. Commits of request logs are no points: no line shows the ends of the logs at their time. The
-- span asked for has so many parts as there may be points, at most 2,000; of each the largest is taken.
WITH polled AS (
    SELECT x.occurred_at AS at, unnest(x.offsets) AS one FROM group_events AS x
    WHERE x.cluster = $cluster AND x.group_id = $group AND x.kind = 'OFFSETS_POLLED' AND x.occurred_at <= $until
),
waiting AS (
    SELECT p.at, p.one."partition" AS name, if(p.one."offset" < 0, 0, greatest(p.one."end" - p.one."offset", 0)) AS lag
    FROM polled AS p WHERE p.one."end" IS NOT NULL
),
added AS (
    SELECT w.at, w.lag - coalesce(lag(w.lag) OVER (PARTITION BY w.name ORDER BY w.at), 0) AS lag FROM waiting AS w
),
summed AS (
    SELECT a.at, CAST(sum(sum(a.lag)) OVER (ORDER BY a.at) AS BIGINT) AS lag FROM added AS a GROUP BY a.at
),
points AS (
    SELECT s.at, s.lag FROM summed AS s WHERE s.at >= $since
    UNION ALL SELECT $since, max_by(s.lag, s.at) FROM summed AS s WHERE s.at < $since HAVING count(*) > 0
    UNION ALL SELECT n.at, max_by(s.lag, s.at) FROM summed AS s, (
        SELECT max(x.occurred_at) AS at FROM group_events AS x
        WHERE x.cluster = $cluster AND x.source = 'poll' AND x.occurred_at BETWEEN $since AND $until
    ) AS n GROUP BY n.at HAVING n.at IS NOT NULL
)
SELECT max_by(p.at, p.lag) AS at, max(p.lag) AS lag
FROM points AS p, (SELECT min(p.at) AS first_at, max(p.at) AS last_at FROM points AS p) AS span
GROUP BY least($limit - 1, 2000) * epoch_ms(p.at - span.first_at) // (epoch_ms(span.last_at - span.first_at) + 1)
ORDER BY 1
