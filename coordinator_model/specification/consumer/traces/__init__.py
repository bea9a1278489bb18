"""Recorded traces of consumer groups, run through the specification, and the rebalances in them."""
