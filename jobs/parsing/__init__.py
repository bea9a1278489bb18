"""Raw lines to rows of group_events."""
