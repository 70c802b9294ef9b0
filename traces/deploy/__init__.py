"""Exported plans at work: what routes records in Kafka's clients, on Spark and in Flink."""
