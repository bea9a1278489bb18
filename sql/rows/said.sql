-- The first six and the last six lines of each group that are told of its clients: of the kinds $kinds. Java's client gives this reason of a
-- join as it leaves (AbstractCoordinator.maybeLeaveGroup): no join follows from it. Where time goes back in a log, another excerpt begins.
WITH stepped AS (
    SELECT x.*, coalesce(x.occurred_at < lag(x.occurred_at) OVER (PARTITION BY x.cluster, x.origin ORDER BY x.position) - INTERVAL 1 SECOND,
                         false) AS falls
    FROM group_events AS x
    WHERE x.broker = 'clients'
), excerpts AS (
    SELECT x.*, 1 + count(*) FILTER (x.falls) OVER (PARTITION BY x.cluster, x.origin ORDER BY x.position) AS excerpt,
           1 + count(*) FILTER (x.falls) OVER (PARTITION BY x.cluster, x.origin) AS excerpts
    FROM stepped AS x
), said AS (
    SELECT x.cluster, x.group_id, x.occurred_at, x.client_id, x.client_host, x.member_id, x.instance_id, x.connection, x.kind, x.reason,
           x.state, x.generation, x.excerpt, x.excerpts, row_number() OVER own AS place,
           count(*) OVER (PARTITION BY x.cluster, x.group_id) AS lines
    FROM excerpts AS x
    WHERE ($cluster IS NULL OR x.cluster = $cluster) AND ($group IS NULL OR x.group_id = $group)
      AND x.occurred_at BETWEEN $since AND $until AND list_contains($kinds, x.kind)
      AND NOT (x.kind = 'CLIENT_REJOINS' AND x.reason = 'consumer pro-actively leaving the group')
    WINDOW own AS (PARTITION BY x.cluster, x.group_id ORDER BY x.occurred_at, x.origin, x.position)
)
SELECT * FROM said AS s WHERE s.place <= 6 OR s.place > s.lines - 6 ORDER BY s.cluster, s.group_id, s.place
