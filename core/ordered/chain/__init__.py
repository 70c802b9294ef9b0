"""Chains of operators: described, checked, bound to a stream."""
