"""Kafka: the Java client's placement, and export of plans."""
