"""Looks through new files before they are read: which logs are in them, and whose they are."""
