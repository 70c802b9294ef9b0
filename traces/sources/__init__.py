"""Sources: raw streams in files of many formats."""
