"""Flink SQL: key groups by the hash of a binary row."""
