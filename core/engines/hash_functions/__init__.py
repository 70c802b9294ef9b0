"""Hash functions that several engines share, compiled."""
