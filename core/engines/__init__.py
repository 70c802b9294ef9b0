"""Stream engines: for each its hash, its placement of keys, its facts, and how a plan is exported to it."""
