"""Exact optimum of small assignment problems."""
