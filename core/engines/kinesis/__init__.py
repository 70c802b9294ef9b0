"""Kinesis: MD5 of keys over the hash-key ranges of shards."""
