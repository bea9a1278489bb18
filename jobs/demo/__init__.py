"""A real Kafka and real consumers on this machine, for demonstrations and live tests."""
