"""Loads, imbalance, migration, and their floors."""
