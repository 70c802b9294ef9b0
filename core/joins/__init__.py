"""Joins: pairs by key, tasks, adaptive execution, remedies."""
