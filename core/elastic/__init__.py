"""Elastic scaling: workers added and removed while a stage runs."""
