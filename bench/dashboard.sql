-- The rows of a lakehouse for bench_dashboard.py. Variables: groups, members, own, each.
CREATE MACRO member_of(g, m) AS 'app-' || m || '-' || substr(md5(g || '/' || m), 1, 8) || '-6ee4-419b-a462-b530fc595756';
CREATE MACRO host_of(m) AS '10.0.0.' || m % 250;
CREATE MACRO at_ms(ms) AS TIMESTAMPTZ '2026-11-21 00:00:00+00' + to_milliseconds(CAST(ms AS BIGINT));
CREATE MACRO size_of(g) AS CASE WHEN g = 0 THEN getvariable('members') ELSE 8 END;

CREATE TABLE rebalances AS
SELECT
  'production' AS cluster, 'group-' || g AS group_id, r + 1 AS generation, at_ms(began) AS started_at, at_ms(began + took - 5) AS joined_at,
  at_ms(began + took) AS ended_at, took - 5 AS join_ms, 5 AS sync_ms, took AS total_ms, 'COMPLETED' AS outcome,
  ['MEMBER_JOINED', 'MEMBER_LEFT', 'SESSION_TIMEOUT', 'POLL_TIMEOUT', 'METADATA_CHANGED'][1 + (g + r) % 5] AS cause, 'because' AS reason,
  member_of(g, m) AS member_id, 'app-' || m AS client_id, host_of(m) AS client_host, size_of(g) AS members_before, size_of(g) AS members_after,
  CAST([] AS VARCHAR[]) AS joined, CAST([] AS VARCHAR[]) AS "left", 'range' AS protocol, 64 AS partitions, 8 AS partitions_moved,
  8 * took AS unavailable_partition_ms, '[]' AS evidence, false AS at_end, 0 AS batch_id, true AS start_seen, 'classic' AS group_protocol
FROM (
  SELECT
    g, r, (g * 7 + r * 13) % size_of(g) AS m, 500 + (g * 31 + r * 17) % 9000 AS took,
    r * (86400000 // CASE WHEN g = 0 THEN getvariable('own') ELSE getvariable('each') END) + g % 1000 AS began
  FROM range(getvariable('groups')) AS a(g), range(CASE WHEN g = 0 THEN getvariable('own') ELSE getvariable('each') END) AS b(r)
);

CREATE TABLE member_sessions AS
SELECT
  'production' AS cluster, 'group-' || g AS group_id, member_of(g, m) AS member_id, 'app-' || m AS client_id, host_of(m) AS client_host,
  at_ms(m * 1000) AS joined_at, at_ms(m * 1000 + 3600000 * (1 + m % 22)) AS ended_at,
  ['LEFT', 'SESSION_TIMEOUT', 'POLL_TIMEOUT'][1 + m % 3] AS end_kind, 45000 AS session_timeout_ms, 300000 AS rebalance_timeout_ms,
  1000 AS heartbeats, 9000 AS longest_gap_ms, '[]' AS evidence, false AS at_end, 0 AS batch_id
FROM range(getvariable('groups')) AS a(g), range(size_of(g)) AS b(m)
WHERE m % 2 = 0;

CREATE TABLE group_transitions AS
SELECT cluster, group_id, moment AS occurred_at, before AS from_state, after AS to_state, generation, cause AS "trigger", '[]' AS evidence,
  false AS at_end, 0 AS batch_id
FROM (
  SELECT
    cluster, group_id, generation, cause, unnest([started_at, joined_at, ended_at]) AS moment,
    unnest(['Stable', 'PreparingRebalance', 'CompletingRebalance']) AS before,
    unnest(['PreparingRebalance', 'CompletingRebalance', 'Stable']) AS after
  FROM rebalances
);

CREATE TABLE findings AS
SELECT
  cluster, group_id, ended_at AS occurred_at, cause AS code, 'ERROR' AS severity, member_id, client_id, client_host, generation,
  'It went silent.' AS message, 'Look at it.' AS advice, '[]' AS evidence, '{}' AS details, false AS at_end, 0 AS batch_id
FROM rebalances
WHERE cause IN ('SESSION_TIMEOUT', 'POLL_TIMEOUT') AND generation % 20 = 0;

-- Each rebalance of the large group has a JoinGroup of each member; of the others, the first two.
CREATE TABLE group_events AS
SELECT
  'production' AS cluster, 'b1' AS broker, 'request' AS "source", 'b1/kafka-request.log' AS origin, row_number() OVER () AS "position", 1 AS lines,
  false AS at_end, 0 AS batch_id, 0 AS error_code, kind, 'group-' || g AS group_id, member_of(g, m) AS member_id, 'app-' || m AS client_id,
  host_of(m) AS client_host, received_at, occurred_at, answer_generation, last_at, beat_count, beats
FROM (
  SELECT
    'JOIN_GROUP' AS kind, g, m, started_at + to_milliseconds(m * 3) AS received_at, joined_at AS occurred_at, generation AS answer_generation,
    NULL AS last_at, NULL AS beat_count, NULL AS beats
  FROM (SELECT *, CAST(substr(group_id, 7) AS BIGINT) AS g FROM rebalances) AS a, range(size_of(g)) AS b(m)
  WHERE g = 0 OR generation <= 2
  UNION ALL
  SELECT
    'HEARTBEAT', 0, m, at_ms(m * 1000 + h * 300000), at_ms(m * 1000 + h * 300000 + 299000), NULL, at_ms(m * 1000 + h * 300000 + 297000), 100,
    list_transform(range(100), lambda x: CAST(x * 3000 AS INTEGER))
  FROM range(getvariable('members')) AS a(m), range(12) AS b(h)
);
