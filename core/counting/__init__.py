"""Counting keys: lossy, sliding and exact; sketches, Zipf fits, counts over time."""
