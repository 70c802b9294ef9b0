"""Rules: the best drop plan over all rates."""
