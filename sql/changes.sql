-- What changed around that time?
--
-- One row per change within `around` of `at`, the closest first: members that joined or left, client versions and timeouts that differ
-- from earlier ones of the same client.id, rebalances, changes of the group's protocol, coordinators that moved, findings. Without --at:
-- the newest changes.
--
-- :cluster
-- :group        only this consumer group, and its cluster's coordinators
-- :at           the time in question
-- :around = 1m  how far around it
-- :limit = 40

WITH span AS (
  SELECT
    timestamp_millis(unix_millis(:at) - :around) AS since,
    timestamp_millis(unix_millis(:at) + :around) AS until
),
members AS (
  SELECT
    a.*,
    lag(a.software) OVER w AS old_software,
    lag(a.session_timeout_ms) OVER w AS old_session_timeout_ms,
    lag(a.rebalance_timeout_ms) OVER w AS old_rebalance_timeout_ms
  FROM arrivals AS a
  WINDOW w AS (PARTITION BY a.cluster, a.group_id, a.client_id ORDER BY a.came_at, a.member_id)
),
-- A broker that starts says of each partition that it resigned: it gives up what it was elected for since then, or before the log began.
terms AS (
  SELECT
    e.cluster, e.broker, e.kind, e.coordinator_partition, e.occurred_at,
    max(CASE WHEN e.kind IN ('BROKER_STARTED', 'BROKER_CLEAN', 'BROKER_UNCLEAN') THEN e.occurred_at END) OVER (
      PARTITION BY e.cluster, e.broker ORDER BY e.occurred_at, e.position ROWS UNBOUNDED PRECEDING
    ) AS started_at,
    max(CASE WHEN e.kind = 'COORDINATOR_ELECTED' THEN e.occurred_at END) OVER (
      PARTITION BY e.cluster, e.broker, e.coordinator_partition ORDER BY e.occurred_at, e.position ROWS UNBOUNDED PRECEDING
    ) AS elected_at
  FROM group_events AS e
  WHERE e.kind IN ('COORDINATOR_ELECTED', 'COORDINATOR_RESIGNED', 'BROKER_STARTED', 'BROKER_CLEAN', 'BROKER_UNCLEAN')
),
changes AS (
  SELECT
    m.came_at AS occurred_at, m.cluster, m.group_id, 'member came' AS what, m.client_id, m.client_host, m.member_id,
    m.software AS detail, CAST(NULL AS STRING) AS id
  FROM members AS m
  UNION ALL
  SELECT
    m.came_at, m.cluster, m.group_id, 'client version', m.client_id, m.client_host, m.member_id,
    m.old_software || ' > ' || m.software, NULL
  FROM members AS m
  WHERE m.old_software <> m.software
  UNION ALL
  SELECT
    m.came_at, m.cluster, m.group_id, 'session.timeout.ms', m.client_id, m.client_host, m.member_id,
    CAST(m.old_session_timeout_ms AS STRING) || ' > ' || CAST(m.session_timeout_ms AS STRING), NULL
  FROM members AS m
  WHERE m.old_session_timeout_ms <> m.session_timeout_ms
  UNION ALL
  SELECT
    m.came_at, m.cluster, m.group_id, 'max.poll.interval.ms', m.client_id, m.client_host, m.member_id,
    CAST(m.old_rebalance_timeout_ms AS STRING) || ' > ' || CAST(m.rebalance_timeout_ms AS STRING), NULL
  FROM members AS m
  WHERE m.old_rebalance_timeout_ms <> m.rebalance_timeout_ms
  UNION ALL
  SELECT s.ended_at, s.cluster, s.group_id, 'member gone', s.client_id, s.client_host, s.member_id, s.end_kind, s.id
  FROM member_sessions_with_id AS s
  UNION ALL
  SELECT
    r.started_at, r.cluster, r.group_id, 'rebalance', r.culprit_client_id, r.culprit_client_host, r.culprit_member_id, r.blamed, r.id
  FROM rebalances_with_culprit AS r
  UNION ALL
  SELECT
    t.occurred_at, t.cluster, t.group_id, 'group.protocol', NULL, NULL, NULL,
    CASE t.trigger WHEN 'CONVERTED_TO_CONSUMER' THEN 'classic > consumer' ELSE 'consumer > classic' END, t.id
  FROM group_transitions_with_id AS t
  WHERE t.trigger IN ('CONVERTED_TO_CONSUMER', 'CONVERTED_TO_CLASSIC')
  UNION ALL
  SELECT f.occurred_at, f.cluster, f.group_id, 'finding', f.client_id, f.client_host, f.member_id, f.code, f.id
  FROM findings_with_id AS f
  UNION ALL
  SELECT
    e.occurred_at, e.cluster, e.group_id, 'coordinator', NULL, e.broker, NULL,
    CASE WHEN e.kind = 'GROUP_LOADED' OR e.state = 'READ_BACK' THEN 'took over the group' ELSE 'gave up the group' END, NULL
  FROM group_events AS e
  WHERE e.kind IN ('GROUP_LOADED', 'GROUP_UNLOADED') OR (e.kind = 'CONSUMER_GROUP_LOG' AND e.state IN ('READ_BACK', 'GIVEN_UP'))
  UNION ALL
  SELECT
    min(e.occurred_at), e.cluster, NULL, 'coordinator', NULL, e.broker, NULL,
    CASE e.kind WHEN 'COORDINATOR_ELECTED' THEN 'elected for ' ELSE 'resigned for ' END
    || CAST(count(DISTINCT e.coordinator_partition) AS STRING) || ' partitions of __consumer_offsets',
    NULL
  FROM terms AS e
  WHERE e.kind = 'COORDINATOR_ELECTED'
    OR (e.kind = 'COORDINATOR_RESIGNED' AND coalesce(e.elected_at >= e.started_at, e.started_at IS NULL))
  GROUP BY e.cluster, e.broker, e.kind, date_trunc('second', e.occurred_at)
)
SELECT
  c.occurred_at,
  c.cluster,
  c.group_id,
  c.what,
  c.detail,
  c.client_id,
  c.client_host AS host,
  c.member_id,
  c.id
FROM changes AS c
CROSS JOIN span AS w
WHERE c.occurred_at >= w.since
  AND c.occurred_at <= w.until
  AND (:cluster IS NULL OR c.cluster = :cluster)
  AND (:group IS NULL OR c.group_id = :group OR c.group_id IS NULL)
ORDER BY
  abs(unix_millis(c.occurred_at) - unix_millis(:at)), c.occurred_at, c.cluster, c.group_id NULLS FIRST, c.what, c.detail NULLS FIRST,
  c.member_id NULLS FIRST, host NULLS FIRST, c.id NULLS FIRST
LIMIT :limit
