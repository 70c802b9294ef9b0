"""Counting keys: lossy, sliding, exact; sketches; Zipf fits."""
