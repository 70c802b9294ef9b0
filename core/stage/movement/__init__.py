"""State on the move: partitions between workers, to disk, to standbys."""
