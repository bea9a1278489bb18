"""Kafka's group coordinator as pure Python: the specification, its clients, and the tracker that follows real coordinators."""
