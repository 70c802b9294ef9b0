"""Synthetic keyed streams: arrival times, keys, costs and sizes."""
