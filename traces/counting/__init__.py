"""Counting the keys of a trace on Spark, lossy or exact."""
