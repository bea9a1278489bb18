"""Helpers that every other room may use."""
