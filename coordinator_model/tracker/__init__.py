"""Follows real coordinators: each event moves the view of its group."""
