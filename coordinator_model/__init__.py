"""Kafka's group coordinator in pure Python: its specification, its clients, and the tracker that follows real coordinators."""
