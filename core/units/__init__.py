"""Amounts, durations, and spans in rows or time, as users write them."""
