"""librdkafka: the seven partitioners of confluent-kafka and its kin."""
