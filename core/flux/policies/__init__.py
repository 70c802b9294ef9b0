"""Flux policies: which partitions move in a round."""
