-- Which lines were refused, and why?
--
-- One row per reason, the most frequent first: how many lines of how many files, from when to when, and the first of them with its file
-- and line number. Lines that are not about groups are skipped, not refused.
--
-- :cluster
-- :since  from this time on; a line without a time always counts
-- :limit = 50

WITH refused AS (
  SELECT
    CASE WHEN q.reason LIKE '%:%' THEN substr(q.reason, 1, instr(q.reason, ':') - 1) ELSE q.reason END AS code,
    q.cluster, q.broker, q.origin, q.position, q.occurred_at, q.raw, q.reason
  FROM quarantine AS q
  WHERE (:cluster IS NULL OR q.cluster = :cluster)
    AND (q.occurred_at IS NULL OR q.occurred_at >= :since)
),
numbered AS (
  SELECT
    r.code, r.cluster, r.broker, r.origin, r.position, r.raw, r.reason,
    count(*) OVER (PARTITION BY r.code) AS lines,
    min(r.occurred_at) OVER (PARTITION BY r.code) AS first_at,
    max(r.occurred_at) OVER (PARTITION BY r.code) AS last_at,
    row_number() OVER (PARTITION BY r.code ORDER BY r.cluster, r.broker, r.origin, r.position, r.raw, r.reason) AS place
  FROM refused AS r
),
counted AS (
  SELECT f.code, count(*) AS files
  FROM (SELECT DISTINCT r.code, r.cluster, r.broker, r.origin FROM refused AS r) AS f
  GROUP BY f.code
)
SELECT
  n.code,
  n.lines,
  c.files,
  n.first_at,
  n.last_at,
  n.cluster,
  n.broker,
  n.origin AS file,
  n.position,
  n.reason,
  n.raw AS line
FROM numbered AS n
JOIN counted AS c ON c.code = n.code
WHERE n.place = 1
ORDER BY n.lines DESC, n.code
LIMIT :limit
