"""Frontier: imbalance against state moved and pinned keys."""
