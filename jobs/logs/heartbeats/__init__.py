"""Heartbeats that repeat an earlier line of their log: they become numbers while the log is read."""
