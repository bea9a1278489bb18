"""Kafka's classic group coordinator, executable: requests and time go in, answers and effects come out."""
