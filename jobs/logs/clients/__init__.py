"""Logs of client applications: which lines say something about a group, in whatever form they come."""
