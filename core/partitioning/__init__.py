"""Partitioning: schemes, constructions, plans, metrics, and the exact optimum."""
