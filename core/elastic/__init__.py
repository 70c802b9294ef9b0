"""Elastic scaling: add and remove workers while a stage runs."""
