-- Lines that could not be read and may be about groups, by the group that they name: empty where that is none that other lines name.
WITH named AS (SELECT DISTINCT x.cluster, x.group_id, ' ' || x.group_id || ' ' AS word FROM group_events AS x WHERE x.group_id <> ''),
refused AS (
    SELECT q.cluster, q.origin || ':' || q.position || ', ' || q.reason AS one, ' ' || translate(q.raw, '=[](),:;"''', '          ') || ' ' AS words
    FROM quarantine AS q
    WHERE ($cluster IS NULL OR q.cluster = $cluster) AND (q.occurred_at IS NULL OR q.occurred_at BETWEEN $since AND $until)
)
SELECT r.cluster, coalesce(n.group_id, '') AS group_id, count(*) AS lines, min(r.one) AS one
FROM refused AS r LEFT JOIN named AS n ON n.cluster = r.cluster AND contains(r.words, n.word)
WHERE $group IS NULL OR coalesce(n.group_id, $group) = $group
GROUP BY ALL ORDER BY ALL
