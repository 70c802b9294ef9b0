"""Kafka: the placement of the Java client, and producers that follow a plan."""
