-- What happened to brokers, which groups did it hit, and what did it cost?
--
-- One row per incident, the most expensive first. `cause`: BROKER_CRASHED, BROKER_SHUT_DOWN, BROKER_FAILED, BROKER_EXPIRED or BROKER_LOST,
-- as the lines about the broker say; BROKERS_RESTARTED, where several were shut down one after the other; COORDINATOR_MOVED, where groups
-- left it and no line says why; COORDINATOR_HELD_UP, where they stayed and could not reach it. A broker's own log may show a crash that no
-- group shows. `back_at` is when the broker was back; null where no line says so. `moved` groups left the broker, `returned` of them came
-- back. `held_up` groups had a coordinator that could not answer. `waited` counts more groups, by request logs: they lost no member to it,
-- but waited 2 s or more for an answer. `lost` counts members that missed their session timeout and were removed. `total_ms` and
-- `unavailable_partition_ms` are the cost of the `rebalances` that are blamed on the incident, as in `why`.
--
-- :cluster
-- :group  only incidents that hit this consumer group
-- :since :until :limit = 20

SELECT
  i.id, i.cluster, i.severity, i.cause, i.broker, i.began_at, i.last_at, i.back_at,
  i.groups_moved AS moved, i.groups_returned AS returned, i.groups_held_up AS held_up, i.groups_waited AS waited,
  size(i.members_lost) AS lost,
  i.rebalances, i.rebalance_ms AS total_ms, i.unavailable_partition_ms,
  replace(i.at_least, 'rebalance_ms', 'total_ms') AS at_least, i.message, i.advice
FROM incidents AS i
WHERE (:cluster IS NULL OR i.cluster = :cluster)
  AND (:group IS NULL OR array_contains(i.groups, CAST(:group AS STRING)))
  AND i.last_at >= :since
  AND i.began_at <= :until
ORDER BY i.unavailable_partition_ms DESC NULLS LAST, i.rebalance_ms DESC, i.began_at, i.cluster, i.broker, i.id
LIMIT :limit
