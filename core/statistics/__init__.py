"""Distributions of statistics."""
