"""Generators of synthetic traces, one per file."""
