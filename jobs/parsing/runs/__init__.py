"""Rows of group_events that stand for many lines: heartbeats of a member, FETCH of a connection."""
