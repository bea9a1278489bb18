"""What speaks to a Kafka cluster, or writes Kafka's bytes."""
