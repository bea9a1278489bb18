"""Spark's streaming queries, and the processes that run them."""
