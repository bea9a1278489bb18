-- Requests of members from `received_at` to `last_at`: a row for each, or for a run of heartbeats. `accepted`: the session of a classic member
-- was renewed when it arrived. It cannot expire while a JoinGroup or SyncGroup waits, and begins anew with the answer. A heartbeat or commit
-- that failed after five seconds was accepted: only a write to the log had timed out. A commit between JoinGroup and SyncGroup (27) was not.
-- In the consumer protocol no commit counts, and none of the last heartbeats, with which a member leaves (epoch -1, -2).
SELECT
  e.cluster, e.group_id, coalesce(nullif(e.answer_member_id, ''), e.member_id) AS member_id, e.client_id, e.client_host, e.kind, e.error_code,
  e.broker, e.position, e.received_at,
  CASE WHEN e.kind IN ('JOIN_GROUP', 'SYNC_GROUP') THEN e.occurred_at ELSE coalesce(e.last_at, e.received_at) END AS last_at,
  e.longest_gap_ms, e.beats, e.beat_count, e.session_timeout_ms, e.lines,
  CASE
    WHEN e.error_code IN (7, 15)
      THEN e.kind IN ('HEARTBEAT', 'OFFSET_COMMIT') AND unix_millis(e.occurred_at) - unix_millis(e.received_at) >= 4500
    WHEN e.kind = 'CONSUMER_GROUP_HEARTBEAT' THEN e.error_code = 0 AND coalesce(e.generation, 0) >= 0
    ELSE e.error_code = 0 OR (e.error_code = 27 AND e.kind <> 'OFFSET_COMMIT')
  END AS accepted
FROM group_events AS e
WHERE e.kind IN ('HEARTBEAT', 'CONSUMER_GROUP_HEARTBEAT', 'JOIN_GROUP', 'SYNC_GROUP', 'OFFSET_COMMIT')
  AND e.group_id <> ''
