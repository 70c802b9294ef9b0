"""Partitioners: one scheme a file, one construction a file."""
