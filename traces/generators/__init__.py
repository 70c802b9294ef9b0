"""Synthetic traces: one generator a file, seeded, the same rows however the work is split."""
