"""Compiled worker of the ordered engine."""
