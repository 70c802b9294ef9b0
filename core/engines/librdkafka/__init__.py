"""librdkafka: the partitioners of confluent-kafka in Python, Go and .NET, node-rdkafka and kcat."""
