-- Findings, each with the broker that did it and the incident that it is part of; and each incident of which none tells, a crash, as a finding
-- of each of its groups: all of one have its id.
WITH parts AS (
  SELECT i.cluster, i.broker, i.id, explode(i.findings) AS finding_id
  FROM incidents AS i
)
SELECT f.*, p.broker AS culprit_broker, p.id AS incident
FROM findings_with_id AS f
LEFT JOIN parts AS p ON p.cluster = f.cluster AND p.finding_id = f.id
UNION ALL
SELECT
  i.id, i.cluster, explode(i.groups) AS group_id, i.began_at, i.cause, i.severity, NULL, NULL, NULL, NULL, i.message, i.advice, i.evidence,
  '{}', NULL, false, i.broker, i.id
FROM incidents AS i
WHERE size(i.findings) = 0
