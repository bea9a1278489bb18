-- Clocks of applications are not those of brokers, and their zone may not be known: they do not say what `now` is.
SELECT min(e.occurred_at) AS oldest, max(e.occurred_at) AS latest,
       coalesce(max(e.occurred_at) FILTER (WHERE e.broker <> 'clients'), latest) AS now
FROM group_events AS e WHERE e.kind <> 'end' AND ($cluster IS NULL OR e.cluster = $cluster)
