-- Which clients fight for one group.instance.id?
--
-- One row per static name that changed hands, disputed names first. DISPUTED: the coordinator refused a client because another one held
-- the name (errors 82 and 111), so two of them ran at once. A request without a member id may come from the client that holds the name.
-- REJOINED: the same name came back with a new member id. Its process restarted, or its client had given up its id, as after a poll
-- timeout, or when it cannot reach its broker. STOPPED: the coordinator refused the name, and accepted no later request of it: librdkafka
-- stops permanently then. `members` counts the member ids that used the name.
--
-- :cluster :group :since :until :limit = 20

WITH static AS (
  SELECT
    e.cluster, e.group_id, e.instance_id, e.kind, e.error_code, e.member_id, e.answer_member_id, e.client_host, e.client_id,
    e.occurred_at, e.kind = 'STATIC_MEMBER_REPLACED' OR (e.kind = 'CONSUMER_GROUP_LOG' AND e.state = 'RETURNED') AS is_replaced
  FROM group_events AS e
  WHERE e.instance_id <> ''
    AND (:cluster IS NULL OR e.cluster = :cluster)
    AND e.occurred_at <= :until
),
owner AS (
  SELECT s.cluster, s.instance_id, min(s.group_id) AS group_id
  FROM static AS s
  WHERE s.group_id <> ''
  GROUP BY s.cluster, s.instance_id
  HAVING count(DISTINCT s.group_id) = 1
),
named AS (
  SELECT s.*, coalesce(nullif(s.group_id, ''), o.group_id) AS owner_group
  FROM static AS s
  LEFT JOIN owner AS o ON o.cluster = s.cluster AND o.instance_id = s.instance_id
)
SELECT
  n.cluster,
  n.owner_group AS group_id,
  n.instance_id,
  CASE
    WHEN count(*) FILTER (
      WHERE (n.error_code IN (82, 111) OR n.kind = 'INSTANCE_FENCED') AND (n.member_id <> '' OR n.kind = 'JOIN_GROUP')
    ) > 0 THEN 'DISPUTED'
    WHEN max(CASE WHEN n.error_code IN (82, 111) THEN n.occurred_at END)
      > max(CASE WHEN n.error_code = 0 OR n.is_replaced THEN n.occurred_at END) THEN 'STOPPED'
    ELSE 'REJOINED'
  END AS verdict,
  count(*) FILTER (WHERE n.error_code IN (82, 111)) AS refused,
  count(*) FILTER (WHERE n.kind = 'INSTANCE_FENCED') AS fenced_lines,
  count(*) FILTER (WHERE n.is_replaced) AS replaced,
  count(DISTINCT nullif(n.member_id, '')) AS members,
  count(DISTINCT nullif(n.client_host, '')) AS hosts,
  min(CASE WHEN n.error_code IN (82, 111) OR n.kind = 'INSTANCE_FENCED' OR n.is_replaced THEN n.occurred_at END) AS first_at,
  max(CASE WHEN n.error_code IN (82, 111) OR n.kind = 'INSTANCE_FENCED' OR n.is_replaced THEN n.occurred_at END) AS last_at
FROM named AS n
WHERE (:group IS NULL OR n.owner_group = :group)
  AND n.occurred_at >= :since
GROUP BY n.cluster, n.owner_group, n.instance_id
HAVING count(*) FILTER (WHERE n.error_code IN (82, 111) OR n.kind = 'INSTANCE_FENCED' OR n.is_replaced) > 0
ORDER BY verdict, refused DESC, last_at DESC, n.cluster, group_id NULLS LAST, n.instance_id
LIMIT :limit
