"""Follows groups of the consumer protocol (KIP-848)."""
