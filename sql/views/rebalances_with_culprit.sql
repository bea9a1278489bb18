-- Rebalances with whom the findings blame for them. A rebalance begins with one member, often an innocent one: the first that joins again
-- after a broker was lost, or one that joins while another no longer answers. `cause`, `client_id` and so on say which one it was. `blamed`
-- and `culprit_…` say what counts: COORDINATOR_MOVED and the broker of that incident, if members departed because of it; else the finding
-- about another client that timed out or joined late while all waited for it; else the one that began. A cause that is a failure itself
-- stays. Where the member that began it was only told, or removed by somebody else, nobody is to blame: nor are consumers of sink tasks, which
-- workers of Connect start and stop, and lose, and a leader whose assignor may have waited for a broker that was away. `failed`: a client did not do in time
-- what it had to, or the coordinator was lost. `startup`: the first rebalance of a group that was new or empty, unless what had emptied it is to blame; `blamed` is
-- STARTUP then.
-- `began_with`: what set off one that a finding explains: after a move that a member joined again, or that its session ran out.
WITH innocent AS (
  SELECT v.cause
  FROM (
    VALUES ('COORDINATOR_MOVED'), ('ADMIN_REMOVED'), ('METADATA_CHANGED'), ('REVOCATION_FOLLOW_UP'), ('ASSIGNMENT_NOT_STORED'),
      ('GROUP_OVER_CAPACITY'), ('REGEX_RESOLVED'), ('GROUP_CONFIG_CHANGED'), ('CONNECTOR_CHANGED'), ('PROBING_REBALANCE')
  ) AS v(cause)
),
waiting_leaders AS (
  SELECT DISTINCT f.cluster, f.group_id, f.member_id, f.code
  FROM findings AS f
  WHERE f.code = 'SESSION_TIMEOUT' AND get_json_object(f.details, '$.leader') = 'true'
    AND get_json_object(f.details, '$.coordinator_elected_ms_before') IS NOT NULL
),
by_workers AS (
  SELECT v.cause
  FROM (VALUES ('MEMBER_JOINED'), ('MEMBER_LEFT'), ('SESSION_TIMEOUT')) AS v(cause)
),
of_incidents AS (
  SELECT i.cluster, i.broker, explode(i.findings) AS finding_id
  FROM incidents AS i
)
SELECT
  r.*,
  r.from_empty AND NOT coalesce(b.emptied, false) AS startup,
  CASE WHEN r.from_empty AND NOT coalesce(b.emptied, false) THEN 'STARTUP' ELSE coalesce(b.code, r.cause) END AS blamed,
  coalesce(b.failure, r.cause) IN (
    'SESSION_TIMEOUT', 'POLL_TIMEOUT', 'SYNC_TIMEOUT', 'REBALANCE_TIMEOUT', 'SLOW_JOINER', 'STUCK_RECONCILING',
    'COORDINATOR_MOVED'
  ) AS failed,
  coalesce(i.broker, b.from_broker) AS culprit_broker,
  CASE WHEN coalesce(s.code, k.cause) IS NOT NULL THEN NULL WHEN b.finding_id IS NOT NULL THEN b.client_id WHEN n.cause IS NULL THEN r.client_id END
    AS culprit_client_id,
  CASE WHEN coalesce(s.code, k.cause) IS NOT NULL THEN NULL WHEN b.finding_id IS NOT NULL THEN b.client_host WHEN n.cause IS NULL THEN r.client_host END
    AS culprit_client_host,
  CASE WHEN coalesce(s.code, k.cause) IS NOT NULL THEN NULL WHEN b.finding_id IS NOT NULL THEN b.member_id WHEN n.cause IS NULL THEN r.member_id END
    AS culprit_member_id,
  b.finding_id,
  CASE
    WHEN b.finding_id IS NULL THEN NULL
    WHEN r.cause <> 'COORDINATOR_MOVED' THEN r.cause
    WHEN array_contains(r.joined, r.member_id) THEN 'MEMBER_JOINED'
    WHEN array_contains(r.left, r.member_id) THEN 'SESSION_TIMEOUT'
  END AS began_with
FROM rebalances_with_id AS r
LEFT JOIN innocent AS n ON n.cause = r.cause
LEFT JOIN waiting_leaders AS s ON s.cluster = r.cluster AND s.group_id = r.group_id AND s.member_id = r.member_id AND s.code = r.cause
LEFT JOIN by_workers AS k ON k.cause = r.cause AND r.client_id LIKE 'connector-consumer-%'
LEFT JOIN blamed_rebalances AS b ON b.cluster = r.cluster AND b.group_id = r.group_id AND b.started_at = r.started_at
  AND b.ended_at = r.ended_at AND b.generation IS NOT DISTINCT FROM r.generation -- its id takes a hash of each rebalance
LEFT JOIN of_incidents AS i ON i.cluster = b.cluster AND i.finding_id = b.finding_id
