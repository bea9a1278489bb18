-- In which state each group is, and the broker with which it was lost, if that crashed.
SELECT g.cluster, g.group_id, g.state, g.generation, g.members, CASE WHEN g.since = c.since THEN c.broker END AS crashed
FROM group_states AS g
LEFT JOIN lost_to_crashes AS c ON c.cluster = g.cluster AND c.group_id = g.group_id
WHERE ($cluster IS NULL OR g.cluster = $cluster) AND ($group IS NULL OR g.group_id = $group)
      AND g.since <= $until AND (g.next_at IS NULL OR g.next_at > $until)
