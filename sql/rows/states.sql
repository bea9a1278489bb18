SELECT cluster, group_id, state, generation, members FROM group_states
WHERE ($cluster IS NULL OR cluster = $cluster) AND ($group IS NULL OR group_id = $group)
      AND since <= $until AND (next_at IS NULL OR next_at > $until)
