-- What did rebalances cost, and who caused them?
--
-- One row per payer, the most expensive first: how long the rebalances took that the payer caused, in all groups. `by` sets what a payer
-- is: an application (a client.id without the number, or the hash of a Kubernetes pod, at its end; the group for threads of Kafka Streams
-- and for Connect workers that are named by their address), a client, a member, a group, or a day (UTC). The payer is the culprit that
-- `why` names; for COORDINATOR_MOVED it is the broker. `(no culprit)` stands for rebalances without one. `unavailable_partition_ms` is the
-- unowned partition time (sum), as in `worst`. `by_failures_ms` is the part that timeouts, late joins and lost coordinators caused, not
-- members that joined or left on purpose. Start-ups are left out: the first rebalance of a group that was new or empty is nobody's fault
-- (`first-join` shows it), unless a failure had emptied the group.
--
-- :by = application  who pays: application, client, member, group or day
-- :cluster :group :since :until :limit = 20

WITH named AS (
  SELECT
    r.*,
    CASE WHEN r.failed THEN r.unavailable_partition_ms ELSE 0 END AS by_failures_ms,
    coalesce(
      CASE :by
        WHEN 'group' THEN r.group_id
        WHEN 'client' THEN r.culprit_client_id
        WHEN 'member' THEN r.culprit_member_id
        WHEN 'day' THEN CAST(DATE '1970-01-01' + CAST(floor(unix_millis(r.started_at) / 86400000) AS INT) AS STRING)
        ELSE CASE
          WHEN r.culprit_client_id LIKE '%-StreamThread-%' OR r.culprit_client_id LIKE 'connect-%:%' THEN r.group_id
          ELSE application(r.culprit_client_id)
        END
      END,
      r.culprit_broker,
      '(no culprit)'
    ) AS payer
  FROM rebalances_with_culprit AS r
  WHERE NOT r.startup
    AND in_scope(r.started_at)
)
SELECT
  n.cluster,
  n.payer,
  count(DISTINCT n.culprit_client_id) AS clients,
  count(DISTINCT n.group_id) AS groups,
  count(*) AS rebalances,
  known_sum(n.total_ms) AS total_ms,
  known_sum(n.unavailable_partition_ms) AS unavailable_partition_ms,
  known_sum(n.by_failures_ms) AS by_failures_ms,
  known_sum(n.partitions_moved) AS partitions_moved,
  at_least(n.total_ms, n.unavailable_partition_ms, n.by_failures_ms, n.partitions_moved) AS at_least
FROM named AS n
GROUP BY n.cluster, n.payer
ORDER BY unavailable_partition_ms DESC NULLS LAST, total_ms DESC, n.cluster, n.payer
LIMIT :limit
