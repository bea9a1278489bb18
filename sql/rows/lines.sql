SELECT cluster, sum(lines_read)::BIGINT lines_read, sum(skipped)::BIGINT skipped, sum(events)::BIGINT events,
       sum(quarantined)::BIGINT quarantined
FROM input_lines GROUP BY cluster ORDER BY cluster
