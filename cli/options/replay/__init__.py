"""Option groups of `adapt replay`."""
