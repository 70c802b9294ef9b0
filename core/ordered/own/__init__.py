"""Operators that users write in Python, compiled for the engine."""
