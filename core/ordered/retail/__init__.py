"""Retail chains, available by name."""
