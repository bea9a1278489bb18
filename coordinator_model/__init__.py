"""Kafka's classic group coordinator, as pure Python: its states and errors, and the tracker that follows real ones."""
