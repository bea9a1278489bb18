-- Lines that tell of trouble and that no entry explains, by group: how many, and the first. $outages: when which broker could not be reached.
WITH proofs AS (
    SELECT DISTINCT f.cluster, unnest(from_json(f.evidence, '[{"origin": "VARCHAR", "position": "BIGINT"}]')) AS line
    FROM findings AS f WHERE ($cluster IS NULL OR f.cluster = $cluster)
),
outages AS (
    SELECT unnest(from_json($outages, '[{"cluster": "VARCHAR", "broker": "VARCHAR", "since": "BIGINT", "until": "BIGINT"}]')) AS o
),
nodes AS (
    SELECT x.cluster, x.broker, any_value(x.coordinator_id) AS node FROM group_events AS x
    WHERE x.source = 'coordinator' AND x.coordinator_id IS NOT NULL AND $outages <> '[]' GROUP BY ALL
),
places AS (  -- where the group is kept
    SELECT DISTINCT x.cluster, x.coordinator_partition FROM group_events AS x WHERE x.group_id = $group AND x.coordinator_partition IS NOT NULL
),
troubled AS (
    SELECT x.cluster, coalesce(x.group_id, '') AS group_id, x.occurred_at, x.origin, x.position, x.kind,
           coalesce(x.reason, '') AS reason, coalesce(x.member_id, '') AS member_id,
           coalesce(x.instance_id, '') AS instance_id
    FROM group_events AS x
    WHERE ($cluster IS NULL OR x.cluster = $cluster) AND x.occurred_at <= $until AND x.occurred_at >= $since
      AND ($group IS NULL OR x.group_id = $group OR (coalesce(x.group_id, '') = '' AND coalesce(  -- another partition's is not this group's
          (SELECT bool_or(p.coordinator_partition = x.coordinator_partition) FROM places AS p WHERE p.cluster = x.cluster), TRUE)))
      AND (x.kind IN ('MEMBER_FAILED', 'MEMBERS_NOT_REJOINED', 'MEMBERS_NOT_SYNCED', 'NO_MEMBER_REJOINED', 'LEADER_NOT_REJOINED', 'INSTANCE_FENCED',
                      'PENDING_MEMBER_EXPIRED', 'CLIENT_POLL_TIMEOUT', 'CLIENT_SESSION_TIMEOUT')
           OR (x.kind = 'CONSUMER_GROUP_LOG' AND x.state IN ('EXPIRED', 'STUCK', 'REFUSED'))
           OR (list_contains($by_words, x.kind) AND regexp_matches(regexp_replace(x.reason, $no_error, ' ', 'g'), $words)
               AND NOT regexp_matches(x.reason, $routine)))
),
untold AS (
    SELECT t.* FROM troubled AS t
    WHERE NOT (regexp_matches(t.reason, $overtaken) AND NOT EXISTS (
        SELECT 1 FROM group_events AS b WHERE b.cluster = t.cluster AND b.group_id = t.group_id AND b.broker <> 'clients'
    ))
    AND NOT EXISTS (
        SELECT 1 FROM proofs AS p WHERE p.cluster = t.cluster AND p.line.origin = t.origin AND p.line.position = t.position
    )
    AND NOT EXISTS (
        SELECT 1 FROM findings AS f
        WHERE f.cluster = t.cluster AND ((t.member_id <> '' AND f.member_id = t.member_id) OR (
            t.kind = 'INSTANCE_FENCED' AND f.code = 'FENCED_INSTANCE'
            AND json_extract_string(f.details, '$.instance_id') = t.instance_id
          ) OR (  -- a client says so when the time is over, and again when it polls
            t.kind = 'CLIENT_POLL_TIMEOUT' AND f.code = 'POLL_TIMEOUT' AND f.group_id = t.group_id
            AND contains(f.evidence, CAST(to_json(t.origin) AS VARCHAR))
          )) AND f.occurred_at BETWEEN t.occurred_at - INTERVAL 1 MINUTE AND t.occurred_at + INTERVAL 1 MINUTE
    )
    AND NOT (regexp_matches(t.reason, $unreached) AND EXISTS (
        SELECT 1 FROM outages LEFT JOIN nodes AS n ON n.cluster = o.cluster AND n.broker = o.broker
        WHERE o.cluster = t.cluster AND epoch_ms(t.occurred_at) BETWEEN o.since AND o.until
          AND (n.node IS NULL OR NOT contains(t.reason, ' to node ') OR contains(t.reason, ' to node ' || n.node || ':'))
    ))
    AND NOT ((t.kind = 'CLIENT_REJOINS' OR (t.kind = 'CLIENT_NOTE' AND regexp_matches(t.reason, '(?i:rebalanc)'))) AND EXISTS (
        SELECT 1 FROM rebalances_now AS r
        WHERE r.cluster = t.cluster AND r.group_id = t.group_id
          AND t.occurred_at BETWEEN r.started_at - INTERVAL 1 MINUTE AND r.ended_at + INTERVAL 1 MINUTE
    ))
)
SELECT u.cluster, u.group_id, count(*) AS lines, arg_min(struct_pack(a := epoch_ms(u.occurred_at), o := u.origin, p := u.position,
       k := u.kind, r := u.reason), (u.occurred_at, u.origin, u.position)) AS first
FROM untold AS u GROUP BY ALL ORDER BY ALL
