"""Flink: key groups, and plans as key groups with Java classes that apply them."""
