"""Synthetic keyed streams: when rows come, of which keys they are and what they cost; any stretch can be made alone."""
