"""Follows real coordinators through what their logs show."""
