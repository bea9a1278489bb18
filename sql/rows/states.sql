-- In which state each group is, and the broker with which it was lost, if that crashed. `newcomers`, `returned`: the members that
-- got their ids, the static members that came back, where no other line shows a state.
SELECT g.cluster, g.group_id, g.state, g.generation, g.members, CASE WHEN g.since = c.since THEN c.broker END AS crashed,
       n.newcomers, n.returned
FROM group_states AS g
LEFT JOIN (
    SELECT x.cluster, x.group_id, list(DISTINCT x.member_id) FILTER (x.kind = 'MEMBER_ID_ISSUED') AS newcomers,
           list(DISTINCT x.instance_id) FILTER (x.kind = 'STATIC_MEMBER_REPLACED') AS returned
    FROM group_events AS x
    WHERE x.kind IN ('MEMBER_ID_ISSUED', 'STATIC_MEMBER_REPLACED')
    GROUP BY x.cluster, x.group_id
) AS n ON g.entered_at IS NULL AND n.cluster = g.cluster AND n.group_id = g.group_id
LEFT JOIN lost_to_crashes AS c ON c.cluster = g.cluster AND c.group_id = g.group_id
WHERE ($cluster IS NULL OR g.cluster = $cluster) AND ($group IS NULL OR g.group_id = $group)
      AND g.since <= $until AND (g.next_at IS NULL OR g.next_at > $until)
