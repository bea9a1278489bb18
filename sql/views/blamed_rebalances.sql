-- Rebalances for which a finding blames somebody: a row for each, with that finding, and the client that it names or the broker that the group
-- left. Members that departed because of a broker come first, and one that comes back with the same id within a minute, then that the coordinator moved, then another member that timed out or joined
-- late while all waited for it (of the same client, too: that which it was before it died), which may only show when the next rebalance has begun. Who could not give partitions up in time after topics
-- had changed may have been unable to: one was deleted. A group that waited for a member that it had refused was full: nobody is to blame.
-- The end of a scheduled delay of Connect is told with the wait of the tasks; `failure` is how their worker was lost then.
-- `emptied`: the rebalance before left the group empty, and what that is blamed on, or what began it, is to blame for this one, too: it ends
-- the time in which nobody worked.
WITH rebalances_named AS (
  SELECT r.id, r.cluster, r.group_id, r.started_at, r.ended_at, r.outcome, r.cause, r.client_id, r.client_host, r.member_id, r.left,
    r.members_before, r.generation
  FROM rebalances_with_id AS r
),
moves AS (
  SELECT f.id, f.cluster, f.group_id, f.occurred_at, f.details
  FROM findings_with_id AS f
  WHERE f.code = 'COORDINATOR_MOVED'
),
departed AS (
  SELECT r.id, r.cluster, r.group_id, explode(r.left) AS member_id
  FROM rebalances_named AS r
  UNION ALL
  SELECT r.id, r.cluster, r.group_id, explode(n.left) AS member_id
  FROM rebalances_named AS r
  JOIN rebalances_named AS n ON n.cluster = r.cluster AND n.group_id = r.group_id AND n.started_at = r.ended_at
  WHERE r.outcome = 'SUPERSEDED'
),
waits AS (
  SELECT
    f.id, f.cluster, f.group_id, f.occurred_at, f.code, f.client_id, f.client_host, f.member_id,
    f.code <> 'GROUP_TOO_LARGE' AS is_to_blame
  FROM findings_with_id AS f
  WHERE f.code IN ('SESSION_TIMEOUT', 'POLL_TIMEOUT', 'SYNC_TIMEOUT', 'REBALANCE_TIMEOUT', 'SLOW_JOINER', 'STUCK_RECONCILING')
    OR (f.code = 'GROUP_TOO_LARGE' AND get_json_object(f.details, '$.join_ms') IS NOT NULL)
),
told AS (
  SELECT
    w.cluster, w.group_id, w.occurred_at AS told_at, w.occurred_at AS found_at, 0 AS is_rebalance, CAST(NULL AS STRING) AS id,
    w.occurred_at AS started_at, CAST(NULL AS STRING) AS cause, CAST(NULL AS STRING) AS client_id, CAST(NULL AS STRING) AS client_host,
    CAST(NULL AS STRING) AS member_id
  FROM waits AS w
  UNION ALL
  SELECT
    r.cluster, r.group_id, CASE WHEN r.outcome = 'SUPERSEDED' THEN r.ended_at + INTERVAL 1 SECOND ELSE r.ended_at END, NULL, 1,
    r.id, r.started_at, r.cause, r.client_id, r.client_host, r.member_id
  FROM rebalances_named AS r
  WHERE r.cause NOT IN ('SESSION_TIMEOUT', 'POLL_TIMEOUT', 'SYNC_TIMEOUT', 'REBALANCE_TIMEOUT', 'COORDINATOR_MOVED')
),
latest AS (
  SELECT
    t.cluster, t.group_id, t.is_rebalance, t.id, t.started_at, t.cause, t.client_id, t.client_host, t.member_id,
    max(t.found_at) OVER (PARTITION BY t.cluster, t.group_id ORDER BY t.told_at, t.is_rebalance ROWS UNBOUNDED PRECEDING) AS found_at
  FROM told AS t
),
blamed AS (
  SELECT
    d.id AS rebalance_id, d.cluster, 0 AS priority, x.id, x.occurred_at, x.details, 'COORDINATOR_MOVED' AS code,
    CAST(NULL AS STRING) AS client_id, CAST(NULL AS STRING) AS client_host, CAST(NULL AS STRING) AS member_id
  FROM departed AS d
  JOIN lost_to_brokers AS x ON x.cluster = d.cluster AND x.group_id = d.group_id AND x.member_id = d.member_id
  UNION ALL
  SELECT r.id, r.cluster, 0, x.id, x.occurred_at, x.details, 'COORDINATOR_MOVED', NULL, NULL, NULL
  FROM rebalances_named AS r
  JOIN lost_to_brokers AS x ON x.cluster = r.cluster AND x.group_id = r.group_id AND x.member_id = r.member_id
    AND r.started_at >= x.occurred_at AND r.started_at <= x.occurred_at + INTERVAL 60 SECONDS
  WHERE r.cause = 'MEMBER_JOINED' AND r.members_before > 0
  UNION ALL
  SELECT r.id, r.cluster, 1, m.id, m.occurred_at, m.details, 'COORDINATOR_MOVED', NULL, NULL, NULL
  FROM rebalances_named AS r
  JOIN moves AS m ON m.cluster = r.cluster AND m.group_id = r.group_id
    AND m.occurred_at >= r.started_at - INTERVAL 60 SECONDS AND m.occurred_at <= r.ended_at
  WHERE r.cause = 'COORDINATOR_MOVED'
  UNION ALL
  SELECT
    n.id, n.cluster, 2, w.id, w.occurred_at, NULL, w.code, CASE WHEN w.is_to_blame THEN w.client_id END,
    CASE WHEN w.is_to_blame THEN w.client_host END, CASE WHEN w.is_to_blame THEN w.member_id END
  FROM latest AS n
  JOIN waits AS w ON w.cluster = n.cluster AND w.group_id = n.group_id AND w.occurred_at = n.found_at
  WHERE n.is_rebalance = 1
    AND n.found_at > n.started_at
    AND NOT (w.code = 'REBALANCE_TIMEOUT' AND n.cause IN ('METADATA_CHANGED', 'REGEX_RESOLVED'))
    AND (
      coalesce(w.client_id, '') <> coalesce(n.client_id, '') OR coalesce(w.client_host, '') <> coalesce(n.client_host, '')
      OR w.member_id <> n.member_id
    )
),
waits_of_tasks AS (
  SELECT f.id, f.cluster, f.group_id, f.occurred_at, f.details, f.client_id, f.client_host, f.member_id
  FROM findings_with_id AS f
  WHERE f.code = 'CONNECT_TASKS_WAIT'
),
ordered AS (
  SELECT
    r.id, r.cause, r.members_before, lag(r.id) OVER (PARTITION BY r.cluster, r.group_id ORDER BY r.started_at, r.ended_at, r.id) AS before_id
  FROM rebalances_named AS r
),
after_empty AS (
  SELECT o.id, e.id AS before_id, e.cluster, e.group_id, e.started_at, e.ended_at, e.cause, e.member_id
  FROM ordered AS o
  JOIN rebalances_named AS e ON e.id = o.before_id
  WHERE o.cause = 'MEMBER_JOINED' AND o.members_before = 0 AND e.outcome = 'EMPTIED'
),
all_blamed AS (
  SELECT b.*, false AS emptied
  FROM blamed AS b
  UNION ALL
  SELECT r.id, r.cluster, 2, w.id, w.occurred_at, w.details, r.cause, w.client_id, w.client_host, w.member_id, false
  FROM rebalances_named AS r
  JOIN waits_of_tasks AS w ON w.cluster = r.cluster AND w.group_id = r.group_id
    AND unix_millis(w.occurred_at) + CAST(get_json_object(w.details, '$.lasted_ms') AS BIGINT) = unix_millis(r.started_at)
  WHERE r.cause = 'DELAY_ENDED'
  UNION ALL
  SELECT a.id, b.cluster, 3 + b.priority, b.id, b.occurred_at, b.details, b.code, b.client_id, b.client_host, b.member_id, true
  FROM after_empty AS a
  JOIN blamed AS b ON b.rebalance_id = a.before_id
  UNION ALL
  SELECT a.id, f.cluster, 6, f.id, f.occurred_at, NULL, a.cause, f.client_id, f.client_host, f.member_id, true
  FROM after_empty AS a
  JOIN findings_with_id AS f ON f.cluster = a.cluster AND f.group_id = a.group_id AND f.member_id = a.member_id
    AND (f.code = a.cause OR (f.code = 'STATIC_MEMBER_AWAY' AND a.cause = 'SESSION_TIMEOUT'))
    AND f.occurred_at >= a.started_at - INTERVAL 1 SECOND AND f.occurred_at <= a.ended_at
),
placed AS (
  SELECT
    b.*,
    row_number() OVER (PARTITION BY b.rebalance_id ORDER BY b.priority, b.occurred_at DESC, b.code, b.member_id NULLS FIRST, b.id) AS place
  FROM all_blamed AS b
)
SELECT
  p.rebalance_id, r.cluster, r.group_id, r.started_at, r.ended_at, r.generation, p.id AS finding_id, p.code,
  coalesce(get_json_object(p.details, '$.worker_cause'), p.code) AS failure, get_json_object(p.details, '$.from_broker') AS from_broker, p.client_id, p.client_host, p.member_id, p.emptied
FROM placed AS p
JOIN rebalances_named AS r ON r.id = p.rebalance_id
WHERE p.place = 1
