-- Members that were removed because of a broker, as the findings COORDINATOR_MOVED name them: a row for each, with that finding.
SELECT
  f.id, f.cluster, f.group_id, f.occurred_at, f.details,
  explode(split(substring(f.members_lost, 3, length(f.members_lost) - 4), '","')) AS member_id
FROM (
  SELECT f.id, f.cluster, f.group_id, f.occurred_at, f.details, get_json_object(f.details, '$.members_lost') AS members_lost
  FROM findings_with_id AS f
  WHERE f.code = 'COORDINATOR_MOVED'
) AS f
