"""Keys: bytes, hashes, text, indexes, and the partitioner interface."""
