SELECT cluster, group_id, max(occurred_at) AS newest_at,
       arg_max(to_state, (occurred_at, coalesce(generation, -1), from_state = 'Dead')) AS state
FROM group_transitions GROUP BY ALL ORDER BY newest_at DESC LIMIT $1
