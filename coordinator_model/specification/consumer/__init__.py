"""Kafka's coordinator for groups of the consumer protocol (KIP-848) as executable code."""
