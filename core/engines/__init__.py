"""Stream engines: hash, placement of keys, facts, and export of plans."""
