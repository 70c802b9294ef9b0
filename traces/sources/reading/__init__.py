"""Files, blocks and records of a source."""
