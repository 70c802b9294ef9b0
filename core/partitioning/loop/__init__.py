"""The loop on keys: count, decide, migrate."""
