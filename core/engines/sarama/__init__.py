"""Sarama: the hash partitioner of the Go client."""
