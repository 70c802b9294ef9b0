"""Comparison over loads, workers, hashes and seeds."""
