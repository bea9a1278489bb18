-- Requests that wait for no other member, and whose answers came $slow_ms later or more: those of a group that came in one second are a row.
SELECT cluster, broker, group_id, min(received_at) AS received_at, max(occurred_at) AS occurred_at,
       max(epoch_ms(occurred_at) - epoch_ms(received_at)) AS ms
FROM group_events
WHERE source = 'request' AND kind IN ('HEARTBEAT', 'CONSUMER_GROUP_HEARTBEAT', 'OFFSET_COMMIT')
      AND epoch_ms(occurred_at) - epoch_ms(received_at) >= $slow_ms
GROUP BY cluster, broker, group_id, date_trunc('second', received_at) ORDER BY ALL
