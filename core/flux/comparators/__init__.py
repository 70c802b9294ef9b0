"""Rebalancing policies of other systems."""
