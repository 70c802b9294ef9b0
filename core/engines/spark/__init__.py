"""Spark: the placement of a shuffle, and plans as tables and expressions."""
