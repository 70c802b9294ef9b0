"""Partitioning functions: schemes, constructions, plans, what they cost, and the optimum."""
