"""Plans: read, written, compared, and evaluated on all keys of a stream."""
