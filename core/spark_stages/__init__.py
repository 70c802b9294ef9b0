"""Skewed stages of Spark applications, and their remedies."""
