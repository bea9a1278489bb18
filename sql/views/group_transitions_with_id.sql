-- Transitions with an id that is a hash of their content: the same logs give the same ids. Several may have the same time:
-- then they happened in the order of generation (none first) and `step`. Polls show no generation, and several steps at once.
SELECT
  't' || left(md5(
    t.cluster || '|' || t.group_id || '|' || CAST(unix_millis(t.occurred_at) AS STRING) || '|' || t.from_state || '|' || t.to_state
    || '|' || coalesce(CAST(t.generation AS STRING), '')
  ), 11) AS id,
  CASE
    WHEN t.to_state = 'PreparingRebalance' AND t.from_state <> 'Dead' AND t.generation IS NULL THEN 0
    WHEN t.to_state IN ('CompletingRebalance', 'Reconciling') THEN 1
    WHEN t.to_state = 'Dead' THEN 3
    WHEN t.from_state = 'Dead' THEN 4
    WHEN t.to_state = 'PreparingRebalance' THEN 5
    ELSE 2
  END AS step,
  t.*
FROM group_transitions AS t
