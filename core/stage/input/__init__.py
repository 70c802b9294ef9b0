"""Rows of a trace as tuples of the stage."""
