-- The names of topics by their ids: as answers to METADATA had them, and offsets of the group that have both.
SELECT o.topic_id, min(if(o.kind = 'TOPIC_NAMED', o.named, regexp_replace(o.named, '-[0-9]+$', ''))) AS topic
FROM (
    SELECT x.kind, unnest(x.offsets)."partition" AS named, unnest(x.offsets).topic_id AS topic_id FROM group_events AS x
    WHERE x.cluster = $cluster AND (x.kind = 'TOPIC_NAMED' OR x.group_id = $group) AND len(x.offsets) > 0
) AS o WHERE o.topic_id <> '' GROUP BY o.topic_id ORDER BY o.topic_id LIMIT $limit
