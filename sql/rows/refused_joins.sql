-- Clients that may not join, how often each asked until it was let in, and whether it has joined since. $errors: those of which a finding tells.
SELECT cluster, group_id, client_id, client_host, error_code, sum(lines)::BIGINT requests, min(occurred_at) first_at,
       max(occurred_at) last_at, coalesce(max(joined_at) > max(occurred_at), false) joined, let_in
FROM (
    SELECT cluster, group_id, nullif(client_id, '') client_id, nullif(client_host, '') client_host, lines, occurred_at, error_code,
           max(occurred_at) FILTER (error_code = 0) OVER (PARTITION BY cluster, group_id, client_id, client_host) joined_at,
           count(*) FILTER (error_code = 0) OVER (
               PARTITION BY cluster, group_id, client_id, client_host ORDER BY occurred_at, origin, position
           ) let_in
    FROM group_events
    WHERE ($cluster IS NULL OR cluster = $cluster) AND ($group IS NULL OR group_id = $group)
      AND occurred_at BETWEEN $since AND $until AND kind = 'JOIN_GROUP'
)
WHERE list_contains($errors, error_code) GROUP BY ALL ORDER BY last_at, cluster, group_id, client_id, client_host, error_code
