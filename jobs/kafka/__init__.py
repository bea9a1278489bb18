"""Connections to Kafka clusters, and the records that a shipper sends to them."""
