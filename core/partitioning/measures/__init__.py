"""Loads, imbalance, migration, and the bounds on them."""
