"""Policies of Flux: which partitions move in a round."""
