"""From group_events to the tables of the tracker."""
