"""`adapt cluster`."""
