-- Groups that any line names, rebalanced or not, and the protocol that they follow by now, as `ask groups` tells it. A committed offset alone
-- shows no group of consumers: it may be that of a group of Streams.
SELECT e.cluster, e.group_id, group_protocol(e) AS protocol
FROM group_events AS e
WHERE e.group_id <> '' AND e.kind NOT IN ('OFFSETS_STORED', 'OFFSETS_POLLED') AND ($cluster IS NULL OR e.cluster = $cluster)
      AND ($group IS NULL OR e.group_id = $group) AND e.occurred_at <= $until
GROUP BY e.cluster, e.group_id
