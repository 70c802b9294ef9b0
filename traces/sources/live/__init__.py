"""Topics of a running Kafka cluster: read once, kept on disk, then ingested as files are."""
