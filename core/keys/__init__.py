"""Keys as bytes: their hashes, their text, an index of them, and what a partitioner is."""
