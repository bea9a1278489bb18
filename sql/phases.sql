-- Where does the time of a rebalance go, and who was slow?
--
-- One row per rebalance, the longest first, from its start until the last member began to work. JOIN: the group waited for its members to
-- rejoin, longest for `slowest_client_id`: the last one that the coordinator removed meanwhile (it never came), else the last one that
-- came. DELAY: the group had been empty, and the broker waited for more members. ASSIGN: the group waited for the leader's assignment
-- (`assignment_ms`: from the leader's JoinGroup answer to its SyncGroup; without a request log, `sync_ms` comes close). INTERVAL: the
-- coordinator waited before it computed the next assignment (`interval_wait_ms`; group.consumer.assignment.interval.ms, Kafka 4.3).
-- START: members had their partitions, but `starter_client_id` asked for offsets only after `first_fetch_ms`; until then it sent
-- heartbeats and consumed nothing. `longest` is null where the log does not show how the rebalance began.
--
-- :cluster :group :since :until :limit = 20

WITH removed AS (
  SELECT p.id, max_by(p.member_id, CAST(unix_millis(p.ended_at) AS STRING) || p.member_id) FILTER (WHERE p.while_joining) AS last_id
  FROM put_out AS p
  GROUP BY p.id
)
SELECT
  r.cluster,
  r.group_id,
  r.started_at,
  r.blamed AS cause,
  r.total_ms,
  CASE
    WHEN r.total_ms IS NULL THEN NULL
    WHEN coalesce(r.first_fetch_ms, 0) >= r.total_ms THEN 'START'
    WHEN r.interval_wait_ms > 0 AND 2 * r.interval_wait_ms >= r.total_ms THEN 'INTERVAL'
    WHEN coalesce(r.join_ms, r.total_ms) < coalesce(r.sync_ms, 0) THEN 'ASSIGN'
    WHEN r.members_before = 0 THEN 'DELAY'
    ELSE 'JOIN'
  END AS longest,
  r.join_ms,
  s.client_id AS slowest_client_id,
  r.sync_ms,
  r.assignment_ms,
  l.client_id AS leader_client_id,
  r.interval_wait_ms,
  r.first_fetch_ms,
  f.client_id AS starter_client_id,
  r.id
FROM rebalances_with_culprit AS r
LEFT JOIN removed AS x ON x.id = r.id
LEFT JOIN arrivals AS s
  ON s.cluster = r.cluster AND s.group_id = r.group_id AND s.member_id = coalesce(x.last_id, r.slowest_member_id)
LEFT JOIN arrivals AS l ON l.cluster = r.cluster AND l.group_id = r.group_id AND l.member_id = r.leader_id
LEFT JOIN arrivals AS f ON f.cluster = r.cluster AND f.group_id = r.group_id AND f.member_id = r.first_fetch_member_id
WHERE in_scope(r.started_at)
ORDER BY r.total_ms + coalesce(r.first_fetch_ms, 0) DESC, r.started_at DESC, r.cluster, r.group_id, r.id
LIMIT :limit
