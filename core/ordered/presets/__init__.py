"""Chains available by name, over generated streams."""
