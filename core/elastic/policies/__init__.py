"""Scaling policies: how many workers a stage needs."""
