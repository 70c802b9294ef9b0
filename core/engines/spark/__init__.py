"""Spark: the placement of a shuffle, and export of plans."""
