"""The decisions of a consumer group: one module for each request, and what they share."""
