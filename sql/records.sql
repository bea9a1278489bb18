-- What did a rebalance cost in records?
--
-- One row per rebalance in which partitions stopped; the one after which most records were read twice comes first. A new owner begins at
-- the last committed offset, so it reads again what was read after that: `reread_min` to `reread_max` records, from the rate of the
-- commits. `unread_ms` is the longest time that nobody read one of the `partitions_stopped`; `partitions_unread` were not read again
-- within ten minutes, or before the next rebalance. `lag_added` is by how many records the lag grew, `catch_up_ms` how long it took to
-- shrink back: both need the ends of logs (`rebalance poll`). Where `gaps` is true, these are offsets, which are records at most. It
-- needs a request log, or `dump-offsets --commits`.
--
-- :cluster :group :since :until :limit = 20

SELECT
  r.cluster,
  r.group_id,
  r.started_at,
  r.blamed AS cause,
  r.culprit_client_id AS client_id,
  r.partitions_stopped,
  r.partitions_unread,
  r.unread_ms,
  r.lag_added,
  r.catch_up_ms,
  r.reread_min,
  r.reread_max,
  r.gaps,
  r.id
FROM rebalances_in_records AS r
WHERE in_scope(r.started_at)
ORDER BY r.reread_max DESC NULLS LAST, r.lag_added DESC NULLS LAST, r.unread_ms DESC NULLS LAST, r.cluster, r.group_id, r.started_at, r.id
LIMIT :limit
