"""Audit of a topic: which partitioners put its records where they are."""
