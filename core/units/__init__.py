"""Amounts with units, as users write them."""
