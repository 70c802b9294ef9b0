"""Flux: partitions rebalanced between workers while a stage runs."""
