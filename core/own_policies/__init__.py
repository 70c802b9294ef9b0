"""Policies that users write: what they see, and their answers."""
