"""Reads logs in stretches, several at a time."""
