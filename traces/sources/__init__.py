"""Where a raw stream comes from: one format a file."""
