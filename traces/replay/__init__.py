"""Traces replayed from disk, and the runs kept."""
