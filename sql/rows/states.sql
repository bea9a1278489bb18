-- In which state each group is, and the broker with which it was lost, if that crashed. `newcomers`, `returned`: the members that
-- got their ids, the static members that came back, where no other line shows a state.
SELECT g.cluster, g.group_id, g.state, g.generation, g.members, CASE WHEN g.since = c.since THEN c.broker END AS crashed,
       CASE WHEN g.entered_at IS NULL THEN (
           SELECT list(DISTINCT x.member_id) FROM group_events AS x
           WHERE x.cluster = g.cluster AND x.group_id = g.group_id AND x.kind = 'MEMBER_ID_ISSUED'
       ) END AS newcomers,
       CASE WHEN g.entered_at IS NULL THEN (
           SELECT list(DISTINCT x.instance_id) FROM group_events AS x
           WHERE x.cluster = g.cluster AND x.group_id = g.group_id AND x.kind = 'STATIC_MEMBER_REPLACED'
       ) END AS returned
FROM group_states AS g
LEFT JOIN lost_to_crashes AS c ON c.cluster = g.cluster AND c.group_id = g.group_id
WHERE ($cluster IS NULL OR g.cluster = $cluster) AND ($group IS NULL OR g.group_id = $group)
      AND g.since <= $until AND (g.next_at IS NULL OR g.next_at > $until)
