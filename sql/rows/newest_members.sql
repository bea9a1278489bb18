SELECT cluster, group_id, arg_max(members_after, ended_at) AS members, max(ended_at) AS newest_at
FROM rebalances GROUP BY ALL ORDER BY newest_at DESC LIMIT $1
