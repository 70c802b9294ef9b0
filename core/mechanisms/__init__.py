"""Comparison of mechanisms on one trace, with one cost model."""
