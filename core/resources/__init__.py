"""Loads of channels, their imbalance, the bounds on it, and the price of migration."""
