"""Key splitting: one key on several channels, partial results merged."""
