"""`adapt advise`."""
