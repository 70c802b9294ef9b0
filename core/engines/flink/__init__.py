"""Flink: key groups, and export of plans with Java classes."""
