-- The first line of each reason, the most frequent reason first, then other lines.
SELECT q.origin, q.position, q.reason, q.raw, split_part(q.reason, ':', 1) AS code FROM quarantine AS q
ORDER BY row_number() OVER (PARTITION BY code ORDER BY q.origin, q.position) > 1, count(*) OVER (PARTITION BY code) DESC,
         code, q.origin, q.position
LIMIT $1
