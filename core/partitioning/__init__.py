"""Partitioning: schemes, constructions, plans and metrics."""
