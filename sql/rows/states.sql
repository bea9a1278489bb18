-- Groups that any line names, rebalanced or not: the protocol that each follows, as `ask groups` tells it, and in which state it is; null: no
-- line shows one. A committed offset alone shows no group of consumers: it may be that of a group of Streams. `crashed`: the broker with
-- which the group was lost. `newcomers`, `returned`: the members that got their ids, the static members that came back, where no other line
-- shows a state.
WITH named AS (
    SELECT x.cluster, x.group_id, group_protocol(x) AS protocol
    FROM group_events AS x
    WHERE x.group_id <> '' AND x.kind NOT IN ('OFFSETS_STORED', 'OFFSETS_POLLED') AND x.occurred_at <= $until
          AND ($cluster IS NULL OR x.cluster = $cluster) AND ($group IS NULL OR x.group_id = $group)
    GROUP BY x.cluster, x.group_id
),
known AS (
    SELECT * FROM group_states AS g
    WHERE g.since <= $until AND (g.next_at IS NULL OR g.next_at > $until)
          AND ($cluster IS NULL OR g.cluster = $cluster) AND ($group IS NULL OR g.group_id = $group)
)
SELECT coalesce(d.cluster, g.cluster) AS cluster, coalesce(d.group_id, g.group_id) AS group_id, coalesce(d.protocol, 'classic') AS protocol,
       g.state, g.generation, g.members, CASE WHEN g.since = c.since THEN c.broker END AS crashed, n.newcomers, n.returned
FROM named AS d FULL JOIN known AS g ON g.cluster = d.cluster AND g.group_id = d.group_id
LEFT JOIN (
    SELECT x.cluster, x.group_id, list(DISTINCT x.member_id) FILTER (x.kind = 'MEMBER_ID_ISSUED') AS newcomers,
           list(DISTINCT x.instance_id) FILTER (x.kind = 'STATIC_MEMBER_REPLACED') AS returned
    FROM group_events AS x
    WHERE x.kind IN ('MEMBER_ID_ISSUED', 'STATIC_MEMBER_REPLACED')
    GROUP BY x.cluster, x.group_id
) AS n ON g.entered_at IS NULL AND n.cluster = g.cluster AND n.group_id = g.group_id
LEFT JOIN lost_to_crashes AS c ON c.cluster = g.cluster AND c.group_id = g.group_id
