"""Connections to Kafka clusters, and Kafka's binary formats."""
