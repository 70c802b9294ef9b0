"""Policies of scaling: how many workers a stage needs."""
