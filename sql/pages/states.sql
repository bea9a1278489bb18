SELECT x.id, x.occurred_at, x.from_state, x.to_state, x.generation, x.trigger, x.member_id, x.client_id, x.client_host, x.reason
FROM group_transitions_with_id AS x WHERE x.cluster = $cluster AND x.group_id = $group AND x.occurred_at <= $until
ORDER BY x.occurred_at, x.generation NULLS FIRST, x.step, x.id LIMIT $limit
