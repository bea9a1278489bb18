-- Which applications, hosts or versions of client software cause the most rebalances?
--
-- One row per culprit; the one whose rebalances took the most time comes first. `by` sets what a culprit is: an application (a client.id
-- without the number, or the hash of a Kubernetes pod, at its end), a host, or the client software with its version, which brokers log
-- since Kafka 2.4. `culprits` shows clients, and says who counts as a culprit, and what `failures` and `cause` are. Start-ups are left
-- out: the first rebalance of a group that was new or empty is nobody's fault.
--
-- :by = application  what a culprit is: application, host or software
-- :cluster :group :since :until :limit = 20

WITH caused AS (
  SELECT
    r.id, r.cluster, r.group_id, r.started_at, r.total_ms, r.unavailable_partition_ms, r.failed, r.blamed AS cause,
    r.culprit_client_id AS client_id, r.culprit_client_host AS client_host,
    coalesce(
      CASE :by
        WHEN 'host' THEN r.culprit_client_host
        WHEN 'software' THEN a.software
        ELSE application(r.culprit_client_id)
      END,
      '(not known)'
    ) AS culprit
  FROM rebalances_with_culprit AS r
  LEFT JOIN arrivals AS a ON a.cluster = r.cluster AND a.group_id = r.group_id AND a.member_id = r.culprit_member_id
  WHERE r.culprit_client_id IS NOT NULL
    AND NOT r.startup
    AND in_scope(r.started_at)
),
counted AS (
  SELECT c.*, sum(c.total_ms) OVER (PARTITION BY c.cluster, c.culprit, c.cause) AS of_cause
  FROM caused AS c
),
placed AS (
  SELECT c.*, row_number() OVER (PARTITION BY c.cluster, c.culprit ORDER BY c.of_cause DESC NULLS LAST, c.cause, c.id) AS place
  FROM counted AS c
)
SELECT
  p.cluster,
  p.culprit,
  count(DISTINCT p.client_id) AS clients,
  count(DISTINCT p.client_host) AS hosts,
  count(DISTINCT p.group_id) AS groups,
  min(p.group_id) AS a_group,
  count(*) AS rebalances,
  count(*) FILTER (WHERE p.failed) AS failures,
  known_sum(p.total_ms) AS total_ms,
  known_sum(p.unavailable_partition_ms) AS unavailable_partition_ms,
  at_least(p.total_ms, p.unavailable_partition_ms) AS at_least,
  max(CASE WHEN p.place = 1 THEN p.cause END) AS cause,
  max(p.started_at) AS last_at
FROM placed AS p
GROUP BY p.cluster, p.culprit
ORDER BY total_ms DESC, rebalances DESC, p.cluster, p.culprit
LIMIT :limit
