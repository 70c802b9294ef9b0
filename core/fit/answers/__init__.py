"""Answers of aggregates under drop plans, and their errors."""
