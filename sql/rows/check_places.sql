-- Lines that need not name the group: of clients other than Java's, other lines may name it.
SELECT e.origin, e.position FROM group_events AS e
WHERE e.kind IN ('COORDINATOR_ELECTED', 'GROUPS_CLEANED') OR e.source = 'client' AND e.connection IS NOT NULL
