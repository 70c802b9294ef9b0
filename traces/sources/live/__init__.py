"""Topics of a running Kafka cluster, read once and kept on disk."""
